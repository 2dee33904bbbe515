"""Where objects come from: files, watched; an API server of Kubernetes.

    origins     file and line of an object, and of a Problem
    scalars     YAML's plain scalars as Kubernetes reads them
    documents   YAML and JSON text to plain data, with lines, bounded
    judgement   one object: decoded and validated; what stands in for a policy that does not decode
    entries     a text to objects, with their lines
    tree        the files under the paths that a user gave, and what has changed among them
    files       objects, Problems and origins of all paths, kept up to date change by change
    watch       the same as a stream of batches, woken by inotify or by polling
    batches     what any source tells: objects that changed or went, and findings
    kube        objects of an API server, listed and watched

One broken document never touches its neighbours: while the source runs, the last version of each object that did
decode stays in force, and a Problem says where and why. All but `watch` and `kube` is synchronous and free of tasks.
"""
