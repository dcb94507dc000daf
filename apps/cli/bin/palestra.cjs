#!/usr/bin/env node
void require('./start.cjs')('../dist/main.js');
