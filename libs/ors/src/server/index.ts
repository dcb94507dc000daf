export { OrsServer, type OrsRequest } from './ors-server.ts';
export { type OrsRoute, orsRoutes, type OrsSandbox } from './routes.ts';
