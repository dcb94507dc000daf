/** An error that is printed like Docker's: one line, exit status 125. */
export class DockerError extends Error {}
