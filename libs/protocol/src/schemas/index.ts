/** The schemas of `/v1`. Only the API needs them, to validate and to document. Other modules import the types: `@palestra/protocol`. */
export { meSchema, namespaceQuerySchema, namespaceSchema, signInBodySchema, browserSessionListSchema } from './account.schema.ts';
export {
  alertBodySchema,
  alertListSchema,
  alertSchema,
  alertConditionSchema,
  alertEventQuerySchema,
  alertEventListSchema,
  readAlertEventsSchema,
  runAlertsSchema,
  unreadAlertEventsSchema,
  alertPreviewBodySchema,
  alertPreviewSchema,
} from './alerts/alert.schema.ts';
export {
  createWebhookSchema,
  changeWebhookSchema,
  webhookSchema,
  webhookListSchema,
  webhookSecretSchema,
  deliveryQuerySchema,
  deliveryListSchema,
  queuedDeliverySchema,
} from './alerts/webhook.schema.ts';
export {
  annotationBodySchema,
  annotationSchema,
  annotationQuerySchema,
  annotationListSchema,
  bulkAnnotationBodySchema,
  bulkAnnotationSchema,
} from './annotation.schema.ts';
export { auditExportQuerySchema, auditQuerySchema, auditListSchema } from './audit.schema.ts';
export { compareQuerySchema, compareSchema } from './compare/compare-runs.schema.ts';
export { compareTasksQuerySchema, compareTasksSchema } from './compare/compare-tasks.schema.ts';
export {
  createEnvironmentSchema,
  updateEnvironmentSchema,
  createVersionSchema,
  environmentVersionSchema,
  environmentVersionListSchema,
  environmentViewSchema,
  environmentDetailsSchema,
  storedReportSchema,
  environmentListSchema,
  deletedEnvironmentSchema,
  environmentVariantsSchema,
  requiredSecretsSchema,
  environmentDiscoverySchema,
  environmentListQuerySchema,
  taskPageQuerySchema,
  taskPageSchema,
  apiUsageQuerySchema,
  environmentUsageSchema,
  environmentRunsQuerySchema,
  environmentRunsSchema,
} from './environments/environment.schema.ts';
export { environmentReportQuerySchema, environmentReportSchema } from './environments/environment-report.schema.ts';
export {
  hostingOfferSchema,
  hostingSettingsSchema,
  deployOptionsSchema,
  createDeploySchema,
  uploadDeployQuerySchema,
  deploySchema,
  deployListSchema,
  hostingLogQuerySchema,
  hostingLogLineSchema,
  instanceListSchema,
  instanceSchema,
  channelListSchema,
  channelSchema,
  promoteSchema,
  rollbackSchema,
  versionDiffSchema,
  secretValueSchema,
  secretListSchema,
} from './environments/hosting.schema.ts';
export { gitHookAnswerSchema, gitLinkAnswerSchema, gitLinkBodySchema, linkedGitSchema } from './environments/git-link.schema.ts';
export {
  connectGithubSchema,
  githubAuthSchema,
  githubConnectedSchema,
  githubDeploymentsSchema,
  githubLogsSchema,
  githubReposSchema,
  githubRuntimeLogsSchema,
  githubRuntimeQuerySchema,
  githubTaskBuildsSchema,
  githubUnlinkedSchema,
  updateGithubSchema,
} from './environments/github.schema.ts';
export { uploadUrlsBodySchema, uploadUrlsSchema, fileListQuerySchema, fileListSchema, deletedFilesSchema } from './file.schema.ts';
export { healthSchema } from './health.schema.ts';
export {
  createKeyBodySchema,
  keyViewSchema,
  keyListSchema,
  createdKeySchema,
  rotateSecretSchema,
  rotatedSecretSchema,
} from './key.schema.ts';
export {
  organisationSchema,
  changeOrganisationSchema,
  createOrganisationSchema,
  createdOrganisationSchema,
  memberSchema,
  memberListSchema,
  createMemberSchema,
  createdMemberSchema,
  changeMemberSchema,
  signInLinkSchema,
} from './organisation.schema.ts';
export { pageQuery, deletedSchema } from './page.schema.ts';
export {
  createReviewQueueSchema,
  reviewQueueSchema,
  reviewQueueListSchema,
  reviewQueueDetailSchema,
  reviewItemSchema,
  nextReviewBodySchema,
  nextReviewSchema,
  reviewAnswerBodySchema,
} from './review.schema.ts';
export { createRolloutExportSchema, rolloutExportSchema, rolloutExportListSchema, cancelledExportSchema } from './rollout-export.schema.ts';
export {
  rolloutHeaderSchema,
  rolloutBesideQuerySchema,
  rolloutBesideSchema,
  rolloutOutlineSchema,
  rolloutCallsSchema,
  messageBodyQuerySchema,
  rolloutDiffQuerySchema,
  rolloutDiffSchema,
} from './rollout-reads.schema.ts';
export {
  ingestReceiptSchema,
  ingestBodySchema,
  messagePageQuerySchema,
  rolloutViewSchema,
  messagePageSchema,
  rolloutListQuerySchema,
  rolloutListSchema,
  rolloutCountQuerySchema,
  rolloutCountSchema,
} from './rollout.schema.ts';
export { rolloutEventSchema } from './rollout-event.schema.ts';
export {
  runSeriesQuerySchema,
  runSeriesSchema,
  runHeatmapQuerySchema,
  runHeatmapSchema,
  runSummaryQuerySchema,
  runSummarySchema,
  runStepsQuerySchema,
  runStepsSchema,
} from './run-curves.schema.ts';
export {
  groupListQuerySchema,
  groupListSchema,
  groupQuerySchema,
  groupViewSchema,
  runTaskListQuerySchema,
  runTaskListSchema,
  runTaskSchema,
} from './run-groups.schema.ts';
export { failureCauseSchema, failureListSchema, failureQuerySchema } from './failure.schema.ts';
export { toolListQuerySchema, toolListSchema, runConfigSchema, runFacetsQuerySchema, runFacetsSchema } from './run-insights.schema.ts';
export { toolQuerySchema, toolStepsSchema, toolCheckQuerySchema, toolCheckSchema } from './run-tools.schema.ts';
export {
  runListQuerySchema,
  runViewSchema,
  runListSchema,
  taskDifficultyQuerySchema,
  taskDifficultySchema,
  runChangeSchema,
} from './run.schema.ts';
export { savedViewBodySchema, savedViewSchema, savedViewQuerySchema, savedViewListSchema } from './annotation.schema.ts';
export { searchQuerySchema, searchSchema } from './search.schema.ts';
export { sessionPolicySchema } from './session-policy.schema.ts';
export {
  sessionListQuerySchema,
  sessionCallListQuerySchema,
  sessionEventsQuerySchema,
  openSessionSchema,
  forkSessionSchema,
  sessionListSchema,
  sessionViewSchema,
  sessionStateSchema,
  sessionCallSchema,
  sessionCallListSchema,
  sessionForkSchema,
  keepSessionSchema,
  keptSessionSchema,
} from './session.schema.ts';
export { sessionClientFrameSchema, sessionServerFrameSchema } from './live/session-socket.schema.ts';
export { createShareSchema, createdShareSchema, shareListQuerySchema, shareListSchema, openShareSchema } from './share.schema.ts';
export { slotListQuerySchema, slotListSchema } from './slot.schema.ts';
export { createTaskExportSchema, taskExportSchema } from './task-export.schema.ts';
export {
  splitNameSchema,
  splitUploadSchema,
  storedSplitSchema,
  taskSetSchema,
  taskSetListSchema,
  publishedTaskSetSchema,
  deletedDraftSchema,
} from './environments/task-set.schema.ts';
export {
  openTextSchema,
  textStepSchema,
  textSessionSchema,
  textStepViewSchema,
  textMetricsSchema,
  textSessionViewSchema,
  textClosedSchema,
} from './text-session.schema.ts';
export { textClientFrameSchema, textServerFrameSchema } from './live/text-socket.schema.ts';
export { traceRequestSchema, traceReceiptSchema } from './trace.schema.ts';
export { runMovesQuerySchema, runMovesSchema } from './compare/run-moves.schema.ts';
