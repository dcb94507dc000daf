import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Api, ApiRefusal } from './api.ts';
import { BRIDGE_ADDRESS } from './api-server-for-pods.ts';
import { fieldOf, NotStarted, type PodContainer, quantity } from './pod.ts';
import { dataOf, type PodPlace } from './pod-files.ts';

export interface ContainerOptions extends PodPlace {
  volumes: ReadonlyMap<string, string>;
  /** Of all containers of this test kubelet. */
  labels: Record<string, string>;
  /** The container whose network this one shares; null: it has the pod's address. */
  network: string | null;
}

interface Image {
  Id: string;
  RepoDigests?: string[];
  Config?: { User?: string };
}

/** The file to which Podman writes the log of a container, one line as `TIME STREAM F TEXT`. */
export const logFile = (place: Pick<PodPlace, 'folder'>, container: string) => path.join(place.folder, `${container}.log`);
/** What a container says when it ends, for the status of its pod. */
export const messageFile = (place: Pick<PodPlace, 'folder'>, container: string) => path.join(place.folder, `${container}.message`);
export const containerName = (uid: string, container: string) => `k8s-${uid}-${container}`;

/** The id of its image, as the status of a pod shows it. Throws `NotStarted`. */
export async function createContainer(podman: Api, spec: PodContainer, options: ContainerOptions): Promise<string> {
  const { pod, podIP, volumes } = options;
  const image = await imageOf(podman, spec, options);
  const variables = await variablesOf(spec, options);
  const expand = (text: string) => expanded(text, variables);
  const limits = spec.resources?.limits ?? {};
  const security = { ...pod.spec.securityContext, ...spec.securityContext };
  const message = messageFile(options, spec.name);
  writeFileSync(message, '');
  // Every user of the pod may write it.
  chmodSync(message, 0o666);
  const body = {
    Image: spec.image,
    ...(spec.command && { Entrypoint: spec.command.map(expand) }),
    ...(spec.args ? { Cmd: spec.args.map(expand) } : spec.command && { Cmd: [] }),
    ...(spec.workingDir && { WorkingDir: spec.workingDir }),
    ...(spec.stdin && { OpenStdin: true, StdinOnce: spec.stdinOnce ?? false }),
    Env: [...variables].map(([name, value]) => `${name}=${value}`),
    User: userOf(security, image),
    Labels: { ...options.labels, 'palestra.test/pod': pod.metadata.uid },
    ...(options.network === null && { Hostname: pod.metadata.name.slice(0, 63) }),
    HostConfig: {
      NetworkMode: options.network === null ? 'podman' : `container:${options.network}`,
      Binds: [
        `${message}:/dev/termination-log`,
        ...(spec.volumeMounts ?? []).map(({ name, mountPath, readOnly, subPath = '' }) => {
          const folder = volumes.get(name);
          if (folder === undefined) throw new NotStarted('CreateContainerConfigError', `there is no volume ${name}`);
          return `${path.join(folder, subPath)}:${mountPath}${readOnly ? ':ro' : ''}`;
        }),
      ],
      ReadonlyRootfs: security.readOnlyRootFilesystem ?? false,
      CapDrop: security.capabilities?.drop ?? [],
      CapAdd: security.capabilities?.add ?? [],
      SecurityOpt: [
        ...(security.allowPrivilegeEscalation === false ? ['no-new-privileges'] : []),
        ...(security.seccompProfile?.type === 'Unconfined' ? ['seccomp=unconfined'] : []),
      ],
      ...(limits['memory'] && { Memory: quantity(limits['memory']), MemorySwap: quantity(limits['memory']) }),
      ...(limits['cpu'] && { NanoCpus: Math.round(quantity(limits['cpu']) * 1e9) }),
      ...(options.network === null && {
        ExtraHosts: (pod.spec.hostAliases ?? []).flatMap(({ ip, hostnames }) => hostnames.map((name) => `${name}:${ip}`)),
      }),
      LogConfig: { Type: 'k8s-file', Config: { path: logFile(options, spec.name) } },
    },
    ...(options.network === null && { NetworkingConfig: { EndpointsConfig: { podman: { IPAMConfig: { IPv4Address: podIP } } } } }),
  };
  try {
    await podman.post(`/containers/create?name=${containerName(pod.metadata.uid, spec.name)}`, body);
  } catch (error) {
    if (!(error instanceof ApiRefusal)) throw error;
    // Another run of this test kubelet has made it.
    if (!/already in use/.test(error.message)) throw new NotStarted('CreateContainerError', error.message);
  }
  return image.RepoDigests?.[0] ?? `sha256:${image.Id.replace(/^sha256:/, '')}`;
}

async function imageOf(podman: Api, { image, imagePullPolicy }: PodContainer, place: PodPlace): Promise<Image> {
  const found = await podman.find<Image>(`/images/${image}/json`);
  if (found !== null) return found;
  if (imagePullPolicy === 'Never')
    throw new NotStarted('ErrImageNeverPull', `Container image "${image}" is not present with pull policy of Never`);
  // Of the registry of a test; others are not reached.
  const said = image.startsWith(`${BRIDGE_ADDRESS}:`) ? await pull(podman, image, place) : 'not found: manifest unknown';
  const pulled = await podman.find<Image>(`/images/${image}/json`);
  if (pulled !== null) return pulled;
  throw new NotStarted('ImagePullBackOff', `Back-off pulling image "${image}": ${said}`);
}

/** What the registry said, with the credentials of the pod alone. */
async function pull(podman: Api, image: string, { pod, api }: PodPlace): Promise<string> {
  const [host] = image.split('/') as [string];
  const secrets = (pod.spec.imagePullSecrets ?? []).map(({ name }) => dataOf(api, pod.metadata.namespace, 'secrets', name));
  const [auth] = (await Promise.all(secrets)).flatMap(({ '.dockerconfigjson': config }) => {
    const { auths = {} } = JSON.parse(config?.toString() ?? '{}') as { auths?: Record<string, { auth: string }> };
    return auths[host]?.auth ?? [];
  });
  const [username, password] = Buffer.from(auth ?? '', 'base64')
    .toString()
    .split(':');
  // With padding, which Podman wants.
  const encoded = Buffer.from(JSON.stringify({ username, password })).toString('base64').replaceAll('+', '-').replaceAll('/', '_');
  const headers: Record<string, string> = auth === undefined ? {} : { 'x-registry-auth': encoded };
  const path = `/libpod/images/pull?quiet=true&tlsVerify=false&reference=${encodeURIComponent(image)}`;
  return JSON.stringify(await podman.request('POST', path, undefined, undefined, headers));
}

/** As a kubelet does: a user that may be root is refused where `runAsNonRoot` says so. */
function userOf(security: NonNullable<PodContainer['securityContext']>, { Config }: Image): string {
  const { runAsUser, runAsGroup, runAsNonRoot } = security;
  if (runAsUser !== undefined) {
    if (runAsNonRoot && runAsUser === 0) throw new NotStarted('CreateContainerConfigError', "container's runAsUser breaks non-root policy");
    return `${runAsUser}:${runAsGroup ?? 0}`;
  }
  const user = Config?.User ?? '';
  if (!runAsNonRoot) return user;
  const name = user.split(':')[0]!;
  if (name === '' || name === '0')
    throw new NotStarted('CreateContainerConfigError', 'container has runAsNonRoot and image will run as root');
  if (/^\d+$/.test(name)) return user;
  const message = `container has runAsNonRoot and image has non-numeric user (${name}), cannot verify user is non-root`;
  throw new NotStarted('CreateContainerConfigError', message);
}

async function variablesOf(spec: PodContainer, options: ContainerOptions): Promise<Map<string, string>> {
  const { pod, api, podIP, node, apiServer } = options;
  const { namespace } = pod.metadata;
  const variables = new Map([
    ['KUBERNETES_SERVICE_HOST', apiServer.host],
    ['KUBERNETES_SERVICE_PORT', String(apiServer.port)],
  ]);
  for (const { prefix = '', configMapRef, secretRef } of spec.envFrom ?? []) {
    const from = secretRef ?? configMapRef!;
    const data = await dataOf(api, namespace, secretRef ? 'secrets' : 'configmaps', from.name!, from.optional);
    for (const [key, value] of Object.entries(data)) variables.set(`${prefix}${key}`, value.toString());
  }
  for (const { name, value = '', valueFrom } of spec.env ?? []) {
    if (valueFrom?.fieldRef) variables.set(name, fieldOf(pod, valueFrom.fieldRef.fieldPath, podIP, node));
    else if (valueFrom?.secretKeyRef || valueFrom?.configMapKeyRef) {
      const from = valueFrom.secretKeyRef ?? valueFrom.configMapKeyRef!;
      const data = await dataOf(api, namespace, valueFrom.secretKeyRef ? 'secrets' : 'configmaps', from.name!, from.optional);
      const found = data[from.key!];
      if (found === undefined && !from.optional) {
        throw new NotStarted('CreateContainerConfigError', `couldn't find key ${from.key} in ${namespace}/${from.name}`);
      }
      if (found !== undefined) variables.set(name, found.toString());
    } else variables.set(name, expanded(value, variables));
  }
  return variables;
}

/** `$(NAME)` is the value of a variable above, `$$(NAME)` the text itself. */
const expanded = (text: string, variables: ReadonlyMap<string, string>): string =>
  text.replaceAll(/\$\$|\$\(([\w.-]+)\)/g, (all, name?: string) => (name === undefined ? '$' : (variables.get(name) ?? all)));
