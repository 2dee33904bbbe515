"""The DNS proxy: `names` knows the mesh's hosts, `resolvers` asks about all others, `proxy` serves both."""
