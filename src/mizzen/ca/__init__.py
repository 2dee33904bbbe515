"""The certificate authority of the mesh: who somebody is, and certificates that say so.

    identity      SPIFFE ids; from a caller's credentials to its identities (`Authenticator`)
    issuers       tokens of an issuer outside the mesh: the rule that trusts it, its keys, the verifier
    tokens        tokens shaped like Kubernetes' projected ones: their issuer and their verifier
    certificates  X.509 in and out: roots, workload and server certificates, checks of requests and chains
    authority     what signs, which roots are trusted, and the rotation from one root to the next
    store         an authority's files: plugged in by the operator, or made and kept by Mizzen
    external      certificates that somebody else signs: what is handed on, and what of the answer is believed
    bundles       the roots of another trust domain, as it publishes them
    service       `istio.v1.auth.IstioCertificateService` over gRPC, and its metrics
    serving       the control plane's own certificate, renewed while it serves

Two rules hold everywhere: the name in a certificate is the identity that the caller has proved, never what its
request asks for; and private keys stay in this package and in files of mode 0600, out of every `repr` and log.
Time comes from a clock that is passed in.
"""
