"""Access logs explained: lines in, causes out.

    addresses     hosts and ports, as they stand in logs
    lines         one line of any known format, with whatever a log pipeline has put around it, as an `Entry`
    flags         Envoy's response flags: stage, meaning
    causes        what can have gone wrong: title, link, kinds of objects at fault, first question, remedy
    rules         which cause an entry tells of: tables over details, transport failures, flags
    subjects      whom an entry is about: Service, subset, host, by the names that it holds
    requests      lines of one request or connection from several proxies, put together
    groups        thousands of entries as a few causes
    candidates    objects that may be behind a group, by its host
    blame         the object of a group with its file and line, where objects are at hand
    report        rows and JSON

Names of clusters, routes and policies carry most of the answer; `candidates` and `blame` alone need a `World`.
"""
