"""Distances, trees and cycles of policy graphs."""
