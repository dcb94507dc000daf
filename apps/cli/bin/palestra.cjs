#!/usr/bin/env node
require('./start.cjs')('../dist/main.js');
