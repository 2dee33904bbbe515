"""The page: what the control plane knows, for people with a browser, at `/ui` of the monitoring port.

    index.html, page.css, page.js (assets) ──asks──> /ui/data/…   matrix    proxies × types: who has what
                                                                  chain     one proxy's resources as a tree
                                                                  findings  what is not in force
                                                                  pushes    what has caused pushes
                                                                  tracing   what a request will meet

The page shows and changes nothing. Its files are for everybody and hold no data; the data is for whoever may see the
debug pages, under the same rules. Answers are bounded, however large the mesh is: lists come in windows (`paging`), and
a tree is asked for branch by branch. Documents are written in threads, as those of the debug console.
"""
