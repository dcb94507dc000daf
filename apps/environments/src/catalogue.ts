import type { Environment } from '@palestra/environment-kit';
import { bench } from './bench/bench.environment.ts';
import { coding } from './coding/coding.environment.ts';
import { codingEnv } from './coding_env/coding_env.environment.ts';
import { ctf } from './ctf/ctf.environment.ts';
import { echo } from './echo/echo.environment.ts';
import { echoEnv } from './echo_env/echo_env.environment.ts';
import { math } from './math/math.environment.ts';
import { whodunit } from './whodunit/whodunit.environment.ts';

/** Every bundled environment, in order of registration. */
export const bundledEnvironments: Environment[] = [whodunit, ctf, math, echo, echoEnv, codingEnv, coding, bench];

/** Versions whose tasks or rewards are not comparable with those of the version before. All others: 1. */
export const versions: Record<string, number> = { whodunit: 2, ctf: 2, math: 2 };
