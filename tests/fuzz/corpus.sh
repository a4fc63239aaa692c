#!/bin/sh
# corpus.sh PROGRAM THIS NAME: the fuzz target with every file of its corpus.
exec "$1" "$(dirname "$2")/corpus/$3"/*
