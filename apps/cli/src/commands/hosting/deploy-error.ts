/** A deploy that did not become a version. `code`: of the service, such as `build_failed`. The message ends with lines of the build log. */
export class DeployError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = 'DeployError';
  }
}
