// The echo of apps/environments as an ORS server at an address of its own, as an owner of an environment runs it. Usage: echo-server.mjs PORT
import { serve } from '@palestra/environment-kit';
import { echo } from '../apps/environments/dist/echo/echo.environment.js';

const server = await serve([echo], { port: Number(process.argv[2]) });
process.once('SIGTERM', () => server.close().then(() => process.exit(0)));
