"""Tests of recording, harvest and tables, in folders by what they test."""
