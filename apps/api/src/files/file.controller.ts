import { Body, Controller, Delete, Get, Param, Post, Query } from '@nestjs/common';
import type { FileListQuery, UploadUrlsBody } from '@palestra/protocol';
import {
  deletedFilesSchema,
  fileListQuerySchema,
  fileListSchema,
  uploadUrlsBodySchema,
  uploadUrlsSchema,
} from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { type AuditedRequest, Audited } from '../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { FileService } from './file.service.ts';

/** Files of environments, for `orwd upload`, `files` and `delete-file`. A path is one `%2F`-encoded segment. */
const auditedFiles = ({ params, result }: AuditedRequest<unknown, { deletedCount: number }>) => ({
  targetId: params['environmentId']!,
  target: params['path']!,
  details: { files: result.deletedCount },
});

@Controller('v1/files')
@RequireScope('environments')
export class FileController {
  constructor(private readonly files: FileService) {}

  @Post('upload-urls')
  @Api({
    summary: 'URLs to PUT files to',
    body: uploadUrlsBodySchema,
    response: uploadUrlsSchema,
    errors: ['environment_not_found', 'storage_quota_exceeded'],
  })
  uploadUrls(@CurrentCaller() caller: Caller, @Body({ schema: uploadUrlsBodySchema }) body: UploadUrlsBody) {
    return this.files.uploadUrls(caller, body);
  }

  @Get(':environmentId')
  @Api({
    summary: 'Files and folders below a prefix',
    query: fileListQuerySchema,
    response: fileListSchema,
    errors: ['environment_not_found'],
  })
  list(@CurrentCaller() caller: Caller, @Param('environmentId') id: string, @Query({ schema: fileListQuerySchema }) query: FileListQuery) {
    return this.files.list(caller, id, query);
  }

  @Audited('file.delete', auditedFiles)
  @Delete(':environmentId/folder/:path')
  @Api({ summary: 'Delete a folder', response: deletedFilesSchema, errors: ['environment_not_found'] })
  deleteFolder(@CurrentCaller() caller: Caller, @Param('environmentId') id: string, @Param('path') path: string) {
    return this.files.deleteFolder(caller, id, path);
  }

  @Audited('file.delete', auditedFiles)
  @Delete(':environmentId/:path')
  @Api({ summary: 'Delete a file', response: deletedFilesSchema, errors: ['environment_not_found', 'file_not_found'] })
  delete(@CurrentCaller() caller: Caller, @Param('environmentId') id: string, @Param('path') path: string) {
    return this.files.delete(caller, id, path);
  }
}
