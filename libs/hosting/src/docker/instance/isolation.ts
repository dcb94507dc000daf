import type { Resources } from '../../provider/provider.port.ts';
import type { EngineInfo } from '../engine/engine.ts';

/** Of a container's log in the engine, so that an instance cannot fill the disk with it. The service keeps its own copy. */
const LOG_MB = 10;
const SHARED_MEMORY_MB = 64;
const SMALL_MB = 16;
/** The user that owns nothing. */
export const NOBODY = '65534:65534';

/** Settings of a container that runs other people's code. `volumes`: folders with temporary files of its user, beside `/tmp`. */
export function isolation(
  info: EngineInfo,
  resources: Pick<Resources, 'cpus' | 'memoryMb' | 'pids' | 'diskMb'>,
  volumes: { folders: readonly string[]; user: string } = { folders: [], user: NOBODY },
): Record<string, unknown> {
  const memory = Math.round(resources.memoryMb * 2 ** 20);
  return {
    ReadonlyRootfs: true,
    Tmpfs: {
      // The engine makes no volume where a tmpfs is.
      ...Object.fromEntries(volumes.folders.map((folder) => [folder, tmpfs(info, resources.diskMb) + ownedBy(info, volumes.user)])),
      '/tmp': tmpfs(info, resources.diskMb),
      // Podman would mount these two without a limit.
      '/var/tmp': tmpfs(info, SMALL_MB),
      '/run': tmpfs(info, SMALL_MB),
    },
    ShmSize: Math.min(SHARED_MEMORY_MB * 2 ** 20, memory),
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges'],
    Privileged: false,
    IpcMode: 'private',
    PidsLimit: resources.pids,
    Memory: memory,
    // Equal to the memory: no swap.
    MemorySwap: memory,
    NanoCpus: Math.round(resources.cpus * 1e9),
    RestartPolicy: { Name: 'no' },
    LogConfig: logConfig(info),
    // The host's side of the bridge would have a link-local address.
    Sysctls: { 'net.ipv6.conf.all.disable_ipv6': '1', 'net.ipv6.conf.default.disable_ipv6': '1' },
  };
}

/** Executable, because programs unpack libraries there. Podman would give it the mode and the files of the image's folder. */
const tmpfs = ({ podman }: EngineInfo, megabytes: number): string =>
  `rw,nosuid,nodev,exec,mode=1777,size=${Math.max(1, Math.round(megabytes))}m${podman ? ',notmpcopyup' : ''}`;

/** runc keeps the mode of the image's folder, in which often only the owner can write. Podman does not accept `uid`. */
function ownedBy({ podman }: EngineInfo, user: string): string {
  const [uid, gid] = user.split(':');
  return podman ? ',U' : `,uid=${uid},gid=${gid}`;
}

/** Two files, so that a follower still reads the older one. Podman has one and truncates it. */
const logConfig = ({ podman }: EngineInfo) =>
  podman
    ? { Type: 'k8s-file', Config: { 'max-size': `${LOG_MB}m` } }
    : { Type: 'json-file', Config: { 'max-size': `${LOG_MB}m`, 'max-file': '2' } };
