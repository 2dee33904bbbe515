"""Routes of the Gateway API: what they attach to, what their rules say, and the VirtualServices they become.

heads      a route without its rules; routes by what they name as parents
parents    what each parent reference of a route fits, or why it does not
matches    conditions of rules        filters    what rules do besides forwarding
backends   where rules forward to     rules      rules of one HTTPRoute or GRPCRoute
streams    VirtualServices of TCPRoute and TLSRoute
objects    VirtualServices of HTTPRoute and GRPCRoute: the rules of one listener and host, merged and ordered
"""
