"""The debug console: what the control plane knows, in istiod's documents.

    http ───┐                                clients   who is connected, and what each was told
            ├─> console.Console ─> pages ─>  dumps     configuration dumps of one proxy
    streams ┘     who may see what (access)  objects   what users wrote, the mesh config
    (ADS)                                    registry  services and endpoints
                                             views     what the mesh is to one proxy

A page is asked for by name and parameters, whichever way the question came. It reads the state of the mesh on the event
loop, where the engine lives, and leaves the writing of the document, which may be large, to a thread.
"""
