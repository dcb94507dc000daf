// Serves the echo environment of apps/environments by ORS, as the owner of an environment does. Usage: echo-server.mjs PORT
import { serve } from '@palestra/environment-kit';
import { echo } from '../apps/environments/dist/echo/echo.environment.js';

const server = await serve([echo], { port: Number(process.argv[2]) });
process.once('SIGTERM', () => server.close().then(() => process.exit(0)));
