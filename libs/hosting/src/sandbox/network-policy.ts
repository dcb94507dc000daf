/** One rule for HTTP requests (openreward 0.1.167, `SandboxEgressRule`). */
export interface NetworkRule {
  action: 'allow' | 'deny';
  /** `example.org`, or `*.example.org` for its subdomains only. */
  host: string;
  /** A pattern of the path, in which `*` stands for any characters; null: any path. */
  path: string | null;
  /** In capitals; null: any. */
  methods: readonly string[] | null;
}

/** Hosts of the registries that the presets of the SDK name. */
const PRESETS = {
  pypi: ['pypi.org', 'files.pythonhosted.org'],
  npm: ['registry.npmjs.org'],
  'apt-ubuntu': ['archive.ubuntu.com', '*.archive.ubuntu.com', 'security.ubuntu.com', 'ports.ubuntu.com'],
  'go-modules': ['proxy.golang.org', 'sum.golang.org'],
  crates: ['crates.io', 'index.crates.io', 'static.crates.io'],
  'rust-toolchain': ['static.rust-lang.org'],
  'hf-cdn': ['*.hf.co', 'cdn-lfs.huggingface.co', '*.cdn-lfs.huggingface.co', 'cdn-lfs-us-1.huggingface.co', 'cdn-lfs-eu-1.huggingface.co'],
} as const;

export const NETWORK_PRESETS = Object.keys(PRESETS) as (keyof typeof PRESETS)[];

/** The rules, and after them those of the presets. Everything else is denied. */
export const rulesOf = (rules: readonly NetworkRule[], presets: readonly (keyof typeof PRESETS)[]): NetworkRule[] => [
  ...rules,
  ...presets.flatMap((preset) => PRESETS[preset].map((host) => ({ action: 'allow', host, path: null, methods: null }) as const)),
];

/**
 * Rules that cannot be enforced: the path and the method of an HTTPS request are encrypted. `plainHosts`: hosts to which the gateway lets only
 * plain HTTP pass.
 */
export function unenforceable(rules: readonly NetworkRule[], plainHosts: readonly string[]): NetworkRule[] {
  const plain = new Set(plainHosts.map((host) => host.toLowerCase()));
  return rules.filter(({ path, methods, host }) => (path !== null || methods !== null) && !plain.has(host.toLowerCase()));
}
