#!/usr/bin/env node
require('./start.cjs')('../dist/docker-main.js');
