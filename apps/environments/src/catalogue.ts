import type { Environment } from '@palestra/environment-kit';
import { echo } from './echo/echo.environment.ts';

/** Every bundled environment, in the order in which it is registered. */
export const bundledEnvironments: Environment[] = [echo];
