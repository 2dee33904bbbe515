"""GatewayClass, Gateway and ListenerSet: which listeners there are and are served, and the Istio Gateways they become.

classes     what a class means: its controller's traits
namespaces  label selectors over namespaces
addresses   the Services that a Gateway is bound to, and what of its ports they reach
sets        which ListenerSets may add to a Gateway
conflicts   which of the listeners of a port give way
tls         TLS of a listener: certificates, client validation, options
listeners   one listener with all that is known of it
objects     the Istio Gateways, one for each listener
parameters  the ConfigMap that customises a managed Gateway
deployments what a managed Gateway wants to have running
"""
