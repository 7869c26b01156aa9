"""The explorer as a web server: roles, sessions, pages and an API."""
