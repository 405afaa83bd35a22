"""The parts of fake_google.py: requests checked against Google's discovery documents, and a world that answers them."""
