import type { Environment } from '@palestra/environment-kit';
import { bench } from './bench/bench.environment.ts';
import { echo } from './echo/echo.environment.ts';
import { echoEnv } from './echo_env/echo_env.environment.ts';

/**
 * Those that may run inside the API (docs/adr/0022): they run nothing that a policy wrote, and no step of theirs computes for longer than a
 * millisecond. This file is loaded by the API, and so is all that it imports.
 */
export const inProcessEnvironments: Environment[] = [echo, echoEnv, bench];
