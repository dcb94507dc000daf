import { isIP } from 'node:net';
import {
  NETWORK_PRESETS,
  type NetworkRule,
  rulesOf,
  type SandboxNetwork,
  type SandboxSidecar,
  type SandboxSpec,
  unenforceable,
} from '@palestra/hosting';
import { type JsonObject, PalestraError } from '@palestra/protocol';
import { z } from 'zod';
import { isImage } from './sandbox-image.ts';

/** Processors and gigabytes that the SDK knows (openreward 0.1.167, `MachineSize`). */
export const MACHINE_SIZES = [
  '0.5:0.5',
  '1:1',
  '2:2',
  '4:4',
  '8:8',
  '16:16',
  '0.5:1',
  '1:2',
  '2:4',
  '4:8',
  '8:16',
  '0.5:2',
  '1:4',
  '2:8',
  '4:16',
  '8:32',
  '16:64',
  'nvidia-l4',
] as const;

const MOST_VARIABLE_BYTES = 65_536;
const MOST_POLICY_BYTES = 65_536;
const PIDS = 1_024;

const text = z.string().max(4_096);
const variables = z
  .record(
    z.string().regex(/^[A-Za-z_][\w.-]{0,255}$/),
    z
      .string()
      .max(32_768)
      .refine((value) => !value.includes('\0'), 'a variable has no NUL'),
  )
  .refine((all) => JSON.stringify(all).length <= MOST_VARIABLE_BYTES, `at most ${MOST_VARIABLE_BYTES} bytes of variables`)
  .nullish();
const image = z.string().refine((name) => isImage(name), 'not the name of an image');
const hostname = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$/, 'not the name of a host');
const folder = z
  .string()
  .regex(/^\/[^\0]{0,1000}$/, 'not an absolute path')
  .refine((path) => !path.split('/').includes('..'), 'a path without ".."');

export const networkPolicySchema = z
  .object({
    rules: z
      .array(
        z.object({
          action: z.enum(['allow', 'deny']),
          host: z.string().regex(/^(?:\*\.)?[^*/:?#@\s]{1,253}$/, 'want "example.com" or "*.example.com"'),
          path: z.string().max(1_000).startsWith('/').nullish(),
          methods: z
            .array(z.string().regex(/^[A-Z]{1,20}$/, 'methods are upper-case'))
            .max(20)
            .nullish(),
        }),
      )
      .max(500)
      .default([]),
    presets: z.array(z.enum(NETWORK_PRESETS)).max(20).default([]),
    enforce: z.boolean().default(true),
  })
  .refine((policy) => JSON.stringify(policy).length <= MOST_POLICY_BYTES, `at most ${MOST_POLICY_BYTES} bytes of rules`);

/** Body of `/create_sandbox` (docs/sandboxes.md). Keys that it does not know are refused: they may be promises. */
export const createSandboxSchema = z.strictObject({
  environment: z.string().min(1).max(300),
  image,
  machine_size: z.enum(MACHINE_SIZES),
  env: variables,
  block_network: z.boolean().default(false),
  bucket_config: z
    .strictObject({
      mount_path: folder,
      read_only: z.literal(true).default(true),
      only_dir: text.nullish(),
      implicit_dirs: z.boolean().default(true),
    })
    .nullish(),
  sidecars: z
    .array(
      z.strictObject({
        name: z
          .string()
          .regex(/^[\w-]{1,63}$/)
          .refine((name) => !['main', 'sidecar'].includes(name.toLowerCase()), 'the names main and sidecar are reserved'),
        image,
        command: z.array(text).min(1).max(100).nullish(),
        args: z.array(text).max(100).nullish(),
        env: variables,
        ports: z.array(z.int()).max(100).nullish(),
      }),
    )
    .max(4)
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'two sidecars have the same name')
    .nullish(),
  host_aliases: z
    .array(z.strictObject({ ip: z.string().refine((ip) => isIP(ip) !== 0, 'not an address'), hostnames: z.array(hostname).max(32) }))
    .max(32)
    .nullish(),
  network: networkPolicySchema.nullish(),
  /** Of an earlier attempt, whose answer the client did not get to its end. */
  task_id: z.string().nullish(),
});
type CreateSandbox = z.output<typeof createSandboxSchema>;

/** A wanted sandbox. */
export interface SandboxRequest {
  environment: string;
  spec: Omit<SandboxSpec, 'id' | 'environment'>;
  bucket: { folder: string; onlyFolder: string | null } | null;
  /** Created with a policy, which can be replaced. */
  hasPolicy: boolean;
  /** What is stored and shown: without the values of variables, which may be keys. */
  stored: JsonObject;
  taskId: string | null;
}

/** Throws `hosting_unsupported` for what cannot be kept. */
export function sandboxRequest(body: CreateSandbox, plainHosts: readonly string[]): SandboxRequest {
  const [cpus, gigabytes] = body.machine_size.split(':').map(Number);
  if (gigabytes === undefined) {
    throw new PalestraError('hosting_unsupported', {
      detail: `machine_size "${body.machine_size}" needs a GPU, and sandboxes of this server have none. Choose one of ${MACHINE_SIZES.filter((size) => size.includes(':')).join(', ')}.`,
    });
  }
  if (body.network && body.block_network)
    throw new PalestraError('invalid_request', { detail: 'network and block_network=True are mutually exclusive' });
  const { task_id: taskId, env, sidecars, ...rest } = body;
  return {
    environment: body.environment,
    spec: {
      image: body.image,
      resources: { cpus: cpus!, memoryMb: gigabytes * 1_024, pids: PIDS },
      variables: env ?? {},
      network: body.network ? policyOf(body.network, plainHosts) : { kind: body.block_network ? 'none' : 'open' },
      sidecars: (sidecars ?? []).map(sidecarOf),
      hostAliases: body.host_aliases ?? [],
    },
    bucket: body.bucket_config ? { folder: body.bucket_config.mount_path, onlyFolder: body.bucket_config.only_dir ?? null } : null,
    hasPolicy: Boolean(body.network),
    stored: {
      ...rest,
      env: Object.keys(env ?? {}),
      sidecars: (sidecars ?? []).map(({ env: own, ...sidecar }) => ({ ...sidecar, env: Object.keys(own ?? {}) })),
    } as JsonObject,
    taskId: taskId ?? null,
  };
}

const sidecarOf = ({ name, image: imageName, command, args, env }: NonNullable<CreateSandbox['sidecars']>[number]): SandboxSidecar => ({
  name,
  image: imageName,
  command: command ?? null,
  args: args ?? null,
  variables: env ?? {},
});

/** Throws `hosting_unsupported` for rules that cannot be enforced. A policy that only reports promises nothing. */
export function policyOf(policy: z.output<typeof networkPolicySchema>, plainHosts: readonly string[]): SandboxNetwork {
  const rules: NetworkRule[] = policy.rules.map(({ action, host, path, methods }) => ({
    action,
    host,
    path: path ?? null,
    methods: methods ?? null,
  }));
  const problem = policy.enforce ? unenforceable(rules, plainHosts)[0] : undefined;
  if (problem !== undefined) {
    throw new PalestraError('hosting_unsupported', {
      detail:
        `The rule for ${problem.host} has a path or methods, which HTTPS hides from the gateway of this server. Use rules for hosts only. ` +
        'For hosts that are reached by plain HTTP, the operator names them in PALESTRA_SANDBOX_HTTP_HOSTS.',
    });
  }
  return { kind: 'policy', rules: rulesOf(rules, policy.presets), enforce: policy.enforce };
}
