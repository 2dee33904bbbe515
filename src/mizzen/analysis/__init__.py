"""Analysis: coded findings over objects, for what is wrong, doubtful or without effect.

In: an engine that holds objects, and `settings.Settings` beside them. Out: `Finding`s, each with a code, a sentence,
the object that it is about and the field. Where the field stands in a file is the caller's affair: nothing here reads
files. Every rule is a query on one object or one namespace, so that after a change only what it touches runs again.

    catalogue    the codes of the reference, IST…, with name, level and text
    own_codes    the same of Mizzen's own codes, MZ…
    findings     one finding; how Go prints its arguments
    objects      objects by kind, namespace and labels; pods that templates stand for
    cluster      kinds that only analysis reads (webhooks, CRDs) and conditions written in a status
    settings     what the command line and the mesh say beside objects
    hosts        which service a host means, as the reference looks it up
    membership   which pods are in the mesh
    annotations_table
    rules/       one module for each family of the reference's analyzers
    own/         Mizzen's own rules
    analyzers    the table of analyzers, and running them
    precheck     rules that only an upgrade asks for
    reports      filters, suppression, order, and what is new since a baseline

The reference has quirks, such as a host that it does not find though a proxy would. Its codes keep them, since that is
what its users compare; what a proxy really does is what the codes of our own are about, and they ask `model`.
"""
