"""What Envoy is told: queries over the model that give encoded xDS resources."""
