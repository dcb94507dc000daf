import { Module } from '@nestjs/common';
import { EnvironmentStoreModule } from '../environment-store.module.ts';
import { CanaryWatch } from './channels/canary-watch.ts';
import { ChannelRepository } from './channels/channel.repository.ts';
import { ChannelsService } from './channels/channels.service.ts';
import { ArtifactPruner } from './deploys/artifact-pruner.ts';
import { DeployController, EnvironmentDeployController } from './deploys/deploy.controller.ts';
import { DeployRunner } from './deploys/deploy-runner.ts';
import { DeployService } from './deploys/deploy.service.ts';
import { DeploySources } from './deploys/deploy-sources.ts';
import { DeployWork } from './deploys/deploy-work.ts';
import { Verifier } from './deploys/verifier.ts';
import { VersionRows } from './deploys/version-rows.ts';
import { GitHookController } from './git/git-hook.controller.ts';
import { GitLinkController } from './git/git-link.controller.ts';
import { GitLinkService } from './git/git-link.service.ts';
import { GithubController } from './git/github.controller.ts';
import { GithubService } from './git/github.service.ts';
import { HostingEvents } from './hosting-events.ts';
import { HostedBackends } from './instances/hosted-backends.ts';
import { InstanceConnections } from './instances/instance-connections.ts';
import { InstanceMetrics } from './instances/instance-metrics.ts';
import { InstanceSpecs } from './instances/instance-specs.ts';
import { InstanceStarter } from './instances/instance-starter.ts';
import { InstancesService } from './instances/instances.service.ts';
import { ReconcilerService } from './instances/reconciler.service.ts';
import { HostingLogs } from './logs/hosting-logs.service.ts';
import { InstanceLogStore } from './logs/instance-log-store.ts';
import { LogController } from './logs/log.controller.ts';
import { LogReader } from './logs/log-reader.service.ts';
import { LogRetention } from './logs/log-retention.ts';
import { HostingEngines } from './providers/hosting-engines.service.ts';
import { HostingOfferController } from './providers/hosting-offer.controller.ts';
import { HostingProviders } from './providers/hosting-providers.ts';
import { EnvironmentSecrets } from './secrets/environment-secrets.ts';
import { Sandboxes } from './sandboxes/sandboxes.service.ts';
import { SandboxSweeper } from './sandboxes/sandbox-sweeper.ts';
import { SecretController } from './secrets/secret.controller.ts';
import { VersionDiffController } from './versions/version-diff.controller.ts';

const shared = [
  HostingEvents,
  HostingLogs,
  InstanceLogStore,
  EnvironmentSecrets,
  HostingProviders,
  HostingEngines,
  InstanceStarter,
  ChannelRepository,
  ChannelsService,
  DeploySources,
];

/** Deployed environments without routes: shared by the API process and workers. */
@Module({
  imports: [EnvironmentStoreModule],
  providers: [
    ...shared,
    VersionRows,
    Verifier,
    DeployWork,
    DeployRunner,
    ArtifactPruner,
    LogRetention,
    InstanceSpecs,
    InstanceMetrics,
    ReconcilerService,
    SandboxSweeper,
    CanaryWatch,
  ],
  exports: shared,
})
export class HostingStoreModule {}

/** Routes of deployed environments, and sessions on their instances. */
@Module({
  imports: [EnvironmentStoreModule, HostingStoreModule],
  controllers: [
    SecretController,
    EnvironmentDeployController,
    DeployController,
    LogController,
    VersionDiffController,
    GitLinkController,
    GitHookController,
    GithubController,
    HostingOfferController,
  ],
  providers: [InstanceConnections, HostedBackends, InstancesService, LogReader, DeployService, GitLinkService, GithubService, Sandboxes],
  exports: [HostingStoreModule, HostedBackends, InstancesService, Sandboxes],
})
export class HostingModule {}
