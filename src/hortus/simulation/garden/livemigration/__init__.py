"""Simulated members of etcd and control planes that move between seeds."""
