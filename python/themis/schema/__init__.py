"""Columns, types and limits of the tables that go in and come out."""
