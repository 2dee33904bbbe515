"""The mesh's kinds as CustomResourceDefinitions, made from the Structs that decoding uses.

    definitions   `mesh_crds`: one document per kind with its names, versions and columns
    schemas       a Struct as a structural schema: types, enums, ranges, what excludes each other
    terms         what a schema says of a Struct beyond what validation knows of it: required fields, rules in CEL
    descriptions  a Struct's and a field's docstring, as one sentence

An API server refuses by them what no control plane could read, before any webhook is asked. The kinds of the Gateway
API are installed by their own project.
"""
