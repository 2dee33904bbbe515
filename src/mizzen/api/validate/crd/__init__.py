"""What the CRDs' schemas refuse beyond types and beyond the webhook's rules.

    schema  walks an object and applies what is known of its Structs
    bounds  lengths, ranges, patterns and required fields, by Struct and field
    rules   rules over several fields of a Struct: the schemas' CEL rules, and fields that exclude each other
    gateway_api_bounds, gateway_api_rules
            the same for the kinds of the Gateway API, which no webhook guards

Types, enums and the ranges of integers are held by decoding already. A field that is absent and one that has its zero
value are one here, so of a required field only an empty value is told.
"""
