#!/usr/bin/env node
void require('./start.cjs')('../dist/docker-main.js');
