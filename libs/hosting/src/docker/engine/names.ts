/** Labels of all that this service creates in an engine. */
export const LABEL = {
  installation: 'palestra.dev/installation',
  instance: 'palestra.dev/instance',
  /** In the place of `instance`: what belongs to a sandbox. */
  sandbox: 'palestra.dev/sandbox',
  version: 'palestra.dev/version',
  environment: 'palestra.dev/environment',
  /** `server`, `gateway`, `files` or `sidecar`. */
  role: 'palestra.dev/role',
  /** Of a gateway: what a connection must present to reach the instance. */
  token: 'palestra.dev/token',
} as const;

export const names = {
  server: (id: string) => `palestra-${id}`,
  gateway: (id: string) => `palestra-${id}-gateway`,
  /** A container that never runs, through which files get into a volume. */
  files: (id: string, unique: string) => `palestra-${id}-files-${unique}`,
  network: (id: string) => `palestra-${id}`,
  sidecar: (id: string, number: number) => `palestra-${id}-sidecar-${number}`,
  secrets: (id: string) => `palestra-${id}-secrets`,
  /** The network on which gateways are reached, one for the installation. */
  front: (installation: string) => `palestra-${installation}-gateways`,
  /** Repository of the images of an installation; one that was built has its build key as tag. */
  images: (installation: string) => `localhost/palestra/${installation.toLowerCase()}`,
};

/** Query of the engine's lists: what belongs to the installation, or to one of its instances. */
export const labelFilter = (installation: string, id?: string) => ({
  label: [`${LABEL.installation}=${installation}`, ...(id === undefined ? [] : [`${LABEL.instance}=${id}`])],
});
