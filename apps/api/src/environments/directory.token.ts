/** Nest token of the `EnvironmentDirectory`, which resolves the deployments of sessions. */
export const ENVIRONMENT_DIRECTORY = Symbol('EnvironmentDirectory');
