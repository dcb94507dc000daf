import { Module } from '@nestjs/common';
import { EnvironmentsModule } from '../environments/environments.module.ts';
import { FileController } from './file.controller.ts';
import { FileService } from './file.service.ts';
import { SignedUrlController } from './signed-url.controller.ts';
import { UploadService } from './upload.service.ts';

@Module({ imports: [EnvironmentsModule], controllers: [FileController, SignedUrlController], providers: [FileService, UploadService] })
export class FilesModule {}
