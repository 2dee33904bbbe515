"""The agent's HTTP server: `server` has the routes, `scrape` merges metrics, `probes` asks the application."""
