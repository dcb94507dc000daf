import type {
  Alert,
  AlertEventList,
  AlertList,
  AlertPreview,
  Annotation,
  AnnotationList,
  ApiKeyView,
  AuditList,
  BrowserSessionList,
  BulkAnnotation,
  CancelledExport,
  ChangeMember,
  ChangeOrganisation,
  ChangeWebhook,
  ChannelList,
  ChannelView,
  ComparedRuns,
  ComparedTasks,
  CreatedKey,
  CreatedMember,
  CreatedOrganisation,
  CreatedShare,
  CreateOrganisation,
  CreateWebhook,
  Deleted,
  DeliveryList,
  DeployList,
  DeployView,
  EnvironmentRuns,
  EnvironmentUsage,
  EnvironmentVersionList,
  FailureList,
  GitLinkAnswer,
  GitLinkBody,
  GroupList,
  GroupView,
  HostingOffer,
  HostingSettings,
  HostingSettingsInput,
  InstanceList,
  InstanceView,
  KeepSessionBody,
  KeptSession,
  LinkedGit,
  Member,
  MemberList,
  MessagePage,
  NewAlert,
  NewAlertPreview,
  NewAnnotation,
  NewBulkAnnotation,
  NewKey,
  NewMember,
  NewReviewAnswer,
  NewReviewQueue,
  NewSavedView,
  NewShare,
  NextReview,
  NextReviewBody,
  OpenShare,
  Organisation,
  PromoteInput,
  QueuedDelivery,
  ReadAlertEvents,
  ReviewItem,
  ReviewQueueDetail,
  ReviewQueueList,
  RollbackInput,
  RolloutBeside,
  RolloutCalls,
  RolloutCount,
  RolloutDiff,
  RolloutExportBody,
  RolloutExportList,
  RolloutExportView,
  RolloutHeader,
  RolloutList,
  RolloutOutline,
  RunAlerts,
  RunChangeBody,
  RunConfig,
  RunFacets,
  RunHeatmap,
  RunList,
  RunMoves,
  RunSeries,
  RunSteps,
  RunSummary,
  RunTask,
  RunTaskList,
  RunView,
  SavedView,
  SavedViewList,
  SearchPage,
  SecretList,
  SecretValue,
  ShareList,
  SignInLink,
  TaskDifficulty,
  ToolCheck,
  ToolList,
  ToolSteps,
  UnreadAlertEvents,
  VersionDiff,
  Webhook,
  WebhookList,
  WebhookSecret,
} from '@palestra/protocol';

/** Routes that `api()` calls, with the types of their 200 answers. `tests/dashboard-routes.spec.ts` compares them with docs/openapi.json. */
export interface Answers {
  'DELETE /v1/alerts/{id}': Deleted;
  'DELETE /v1/annotations/{id}': Deleted;
  'DELETE /v1/browser-sessions/{id}': Deleted;
  'DELETE /v1/demo': Deleted;
  'DELETE /v1/environments/{owner}/{name}/git': GitLinkAnswer;
  'DELETE /v1/environments/{owner}/{name}/secrets/{secret}': SecretList;
  'DELETE /v1/exports/{id}': CancelledExport;
  'DELETE /v1/keys/{id}': ApiKeyView;
  'DELETE /v1/members/{id}': Deleted;
  'DELETE /v1/review-queues/{id}': Deleted;
  'DELETE /v1/runs/{id}': Deleted;
  'DELETE /v1/shares/{id}': Deleted;
  'DELETE /v1/views/{id}': Deleted;
  'DELETE /v1/webhooks/{id}': Deleted;
  'GET /v1/alert-events': AlertEventList;
  'GET /v1/alerts': AlertList;
  'GET /v1/annotations': AnnotationList;
  'GET /v1/audit': AuditList;
  'GET /v1/browser-sessions': BrowserSessionList;
  'GET /v1/compare': ComparedRuns;
  'GET /v1/compare/tasks': ComparedTasks;
  'GET /v1/deploys/{id}': DeployView;
  'GET /v1/diff': RolloutDiff;
  'GET /v1/environment-usage': EnvironmentUsage;
  'GET /v1/environments/{owner}/{name}/channels': ChannelList;
  'GET /v1/environments/{owner}/{name}/deploys': DeployList;
  'GET /v1/environments/{owner}/{name}/git': GitLinkAnswer;
  'GET /v1/environments/{owner}/{name}/hosting': HostingSettings;
  'GET /v1/environments/{owner}/{name}/instances': InstanceList;
  'GET /v1/environments/{owner}/{name}/runs': EnvironmentRuns;
  'GET /v1/environments/{owner}/{name}/secrets': SecretList;
  'GET /v1/environments/{owner}/{name}/task-difficulty': TaskDifficulty;
  'GET /v1/environments/{owner}/{name}/versions': EnvironmentVersionList;
  'GET /v1/environments/{owner}/{name}/versions/{a}/diff/{b}': VersionDiff;
  'GET /v1/exports': RolloutExportList;
  'GET /v1/hosting': HostingOffer;
  'GET /v1/members': MemberList;
  'GET /v1/organisation': Organisation;
  'GET /v1/review-queues': ReviewQueueList;
  'GET /v1/review-queues/{id}': ReviewQueueDetail;
  'GET /v1/review-queues/{id}/items/{position}': ReviewItem;
  'GET /v1/rollouts/{id}/beside': RolloutBeside;
  'GET /v1/rollouts/{id}/calls': RolloutCalls;
  'GET /v1/rollouts/{id}/header': RolloutHeader;
  'GET /v1/rollouts/{id}/messages': MessagePage;
  'GET /v1/rollouts/{id}/outline': RolloutOutline;
  'GET /v1/runs': RunList;
  'GET /v1/runs/{id}/rollouts': RolloutList;
  'GET /v1/runs/{id}/rollouts/count': RolloutCount;
  'GET /v1/runs/{run}/alerts': RunAlerts;
  'GET /v1/runs/{run}/config': RunConfig;
  'GET /v1/runs/{run}/facets': RunFacets;
  'GET /v1/runs/{run}/failures': FailureList;
  'GET /v1/runs/{run}/groups': GroupList;
  'GET /v1/runs/{run}/groups/{key}': GroupView;
  'GET /v1/runs/{run}/heatmap': RunHeatmap;
  'GET /v1/runs/{run}/moves': RunMoves;
  'GET /v1/runs/{run}/search': SearchPage;
  'GET /v1/runs/{run}/series': RunSeries;
  'GET /v1/runs/{run}/steps': RunSteps;
  'GET /v1/runs/{run}/summary': RunSummary;
  'GET /v1/runs/{run}/tasks': RunTaskList;
  'GET /v1/runs/{run}/tasks/{task}': RunTask;
  'GET /v1/runs/{run}/tools': ToolList;
  'GET /v1/runs/{run}/tools/check': ToolCheck;
  'GET /v1/runs/{run}/tools/steps': ToolSteps;
  'GET /v1/shared': OpenShare;
  'GET /v1/shares': ShareList;
  'GET /v1/views': SavedViewList;
  'GET /v1/webhooks': WebhookList;
  'GET /v1/webhooks/{id}/deliveries': DeliveryList;
  'PATCH /v1/members/{id}': Member;
  'PATCH /v1/organisation': Organisation;
  'PATCH /v1/runs/{id}': RunView;
  'PATCH /v1/webhooks/{id}': Webhook;
  'POST /v1/alert-events/read': UnreadAlertEvents;
  'POST /v1/alerts': Alert;
  'POST /v1/alerts/preview': AlertPreview;
  'POST /v1/annotations': Annotation;
  'POST /v1/deploys/{id}/cancel': DeployView;
  'POST /v1/environments/{owner}/{name}/git/secret': LinkedGit;
  'POST /v1/environments/{owner}/{name}/instances/{id}/restart': InstanceView;
  'POST /v1/environments/{owner}/{name}/promote': ChannelView;
  'POST /v1/environments/{owner}/{name}/rollback': ChannelView;
  'POST /v1/exports': RolloutExportView;
  'POST /v1/keys': CreatedKey;
  'POST /v1/members': CreatedMember;
  'POST /v1/members/{id}/sign-in-link': SignInLink;
  'POST /v1/organisations': CreatedOrganisation;
  'POST /v1/review-queues': ReviewQueueDetail;
  'POST /v1/review-queues/{id}/close': ReviewQueueDetail;
  'POST /v1/review-queues/{id}/next': NextReview;
  'POST /v1/runs/{run}/annotations': BulkAnnotation;
  'POST /v1/sessions/{sid}/rollout': KeptSession;
  'POST /v1/shares': CreatedShare;
  'POST /v1/views': SavedView;
  'POST /v1/webhooks': WebhookSecret;
  'POST /v1/webhooks/{id}/deliveries/{delivery}/redeliver': QueuedDelivery;
  'POST /v1/webhooks/{id}/secret': WebhookSecret;
  'POST /v1/webhooks/{id}/test': QueuedDelivery;
  'PUT /v1/alerts/{id}': Alert;
  'PUT /v1/environments/{owner}/{name}/git': LinkedGit;
  'PUT /v1/environments/{owner}/{name}/hosting': HostingSettings;
  'PUT /v1/environments/{owner}/{name}/secrets/{secret}': SecretList;
  'PUT /v1/review-queues/{id}/items/{position}': ReviewItem;
  'PUT /v1/views/{id}': SavedView;
}

/** Request bodies of these routes. */
export interface Bodies {
  'PATCH /v1/members/{id}': ChangeMember;
  'PATCH /v1/organisation': ChangeOrganisation;
  'PATCH /v1/runs/{id}': RunChangeBody;
  'PATCH /v1/webhooks/{id}': ChangeWebhook;
  'POST /v1/alert-events/read': ReadAlertEvents;
  'POST /v1/alerts': NewAlert;
  'POST /v1/alerts/preview': NewAlertPreview;
  'POST /v1/annotations': NewAnnotation;
  'POST /v1/environments/{owner}/{name}/promote': PromoteInput;
  'POST /v1/environments/{owner}/{name}/rollback': RollbackInput;
  'POST /v1/exports': RolloutExportBody;
  'POST /v1/keys': NewKey;
  'POST /v1/members': NewMember;
  'POST /v1/organisations': CreateOrganisation;
  'POST /v1/review-queues': NewReviewQueue;
  'POST /v1/review-queues/{id}/next': NextReviewBody;
  'POST /v1/runs/{run}/annotations': NewBulkAnnotation;
  'POST /v1/sessions/{sid}/rollout': KeepSessionBody;
  'POST /v1/shares': NewShare;
  'POST /v1/views': NewSavedView;
  'POST /v1/webhooks': CreateWebhook;
  'PUT /v1/alerts/{id}': NewAlert;
  'PUT /v1/environments/{owner}/{name}/git': GitLinkBody;
  'PUT /v1/environments/{owner}/{name}/hosting': HostingSettingsInput;
  'PUT /v1/environments/{owner}/{name}/secrets/{secret}': SecretValue;
  'PUT /v1/review-queues/{id}/items/{position}': NewReviewAnswer;
  'PUT /v1/views/{id}': NewSavedView;
}
