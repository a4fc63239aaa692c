#!/bin/sh
# Usage: make_exports.sh TABLE MAP OPTIONS
# Reads TABLE, the preprocessed exports.map.in, with any number of `export "symbol"` per line. Writes
# the version script to MAP and the options of the linker to OPTIONS.
set -eu
symbols() {
    grep -o 'export "[^"]\+"' "$1" | sed 's/export "\(.*\)"/\1/'
}
{
    echo '{ global:'
    symbols "$1" | sed 's/.*/    &;/'
    echo '  local: *; };'
} >"$2"
symbols "$1" | sed 's/^/--require-defined=/' >"$3"
