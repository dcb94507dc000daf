import { TestEngine } from '../../integration/hosting/docker-engine.world.ts';
import type { Api } from './api.ts';
import { ControlPlane } from './control-plane.ts';
import { TestKubelet } from './kubelet.ts';

/** A control plane, Podman, and a node whose pods run in it. */
export interface Cluster {
  plane: ControlPlane;
  engine: TestEngine;
  kubelet: TestKubelet;
  close(): Promise<void>;
}

/** Starts a cluster with one node that runs pods; it takes five seconds. `prepare` runs before its controllers start. */
export async function startCluster(prepare?: (api: Api) => Promise<void>): Promise<Cluster> {
  const [plane, engine] = await Promise.all([ControlPlane.start(prepare), TestEngine.start()]);
  const kubelet = await TestKubelet.start({ plane, engine });
  return {
    plane,
    engine,
    kubelet,
    close: async () => {
      await kubelet.close();
      await plane.stop();
      await engine.close();
    },
  };
}
