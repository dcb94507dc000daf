import type { Resources } from '../../provider/provider.port.ts';
import type { EngineInfo } from '../engine/engine.ts';

/** Of a container's log in the engine, so that an instance cannot fill the disk with it. The service keeps its own copy. */
const LOG_MB = 10;
const SHARED_MEMORY_MB = 64;
const SMALL_MB = 16;
/** The user that owns nothing. */
export const NOBODY = '65534:65534';

/** Settings of a container that runs other people's code. */
export function isolation(info: EngineInfo, resources: Pick<Resources, 'cpus' | 'memoryMb' | 'pids' | 'diskMb'>): Record<string, unknown> {
  const memory = Math.round(resources.memoryMb * 2 ** 20);
  return {
    ReadonlyRootfs: true,
    // Podman would mount the last two without a limit.
    Tmpfs: { '/tmp': tmpfs(info, resources.diskMb), '/var/tmp': tmpfs(info, SMALL_MB), '/run': tmpfs(info, SMALL_MB) },
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

/** Two files, so that a follower still reads the older one. Podman has one and truncates it. */
const logConfig = ({ podman }: EngineInfo) =>
  podman
    ? { Type: 'k8s-file', Config: { 'max-size': `${LOG_MB}m` } }
    : { Type: 'json-file', Config: { 'max-size': `${LOG_MB}m`, 'max-file': '2' } };
