/** Nest token of the `EnvironmentDirectory` that sessions resolve deployments by. */
export const ENVIRONMENT_DIRECTORY = Symbol('EnvironmentDirectory');
