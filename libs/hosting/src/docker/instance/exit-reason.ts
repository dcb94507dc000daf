import type { ContainerInspection } from './containers.ts';

/** How a container ended, for the author of the environment. */
export function exitReason({ State: state, HostConfig }: ContainerInspection): string {
  const limit = `its ${Math.round(HostConfig.Memory / 2 ** 20)} MB of memory`;
  if (state.OOMKilled) return `The server used more than ${limit} and was killed (status 137).`;
  const { ExitCode: code } = state;
  // Podman does not say that the kernel killed it for its memory.
  if (code === 137) return `The server was killed (status 137), probably because it used more than ${limit}.`;
  const said = state.Error ? ` ${state.Error}` : '';
  if (code === 126 || code === 127) {
    return `The server could not be started (status ${code}).${said} Its program must exist and be executable by a user other than root.`;
  }
  if (code > 128) return `The server was ended by signal ${code - 128} (status ${code}).${said}`;
  return `The server ended with status ${code}.${said}`;
}
