#!/usr/bin/env node
import { dockerCommand } from './commands/docker.ts';

/** `palestra docker` alone: a trainer starts it three times a rollout, and waits for it. */
await dockerCommand().parseAsync();
