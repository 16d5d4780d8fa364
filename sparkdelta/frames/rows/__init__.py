"""Rows of a table: conversion between data files and logical rows."""
