#!/usr/bin/env node
import { dockerCommand } from './program/docker.ts';

/** Only `palestra docker`, for a fast start: a trainer runs it three times per rollout. */
await dockerCommand().parseAsync();
