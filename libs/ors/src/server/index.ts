export { OrsDialect, type OrsRequest } from './dialect.ts';
export { type OrsRoute, orsRoutes } from './routes.ts';
