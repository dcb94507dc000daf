export { OrsServer, type OrsRequest } from './ors-server.ts';
export { type OrsRoute, orsRoutes } from './routes.ts';
