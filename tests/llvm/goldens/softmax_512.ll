declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare <16 x float> @llvm.rint.v16f32(<16 x float>)
declare <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float>, <16 x float>, <16 x float>, i16, i32)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, <16 x i1>)

define internal <16 x float> @sinter.exp.v16f32(<16 x float> %x) alwaysinline nounwind {
  %t0 = fcmp ogt <16 x float> %x, splat (float 0x4056400000000000)
  %t1 = select <16 x i1> %t0, <16 x float> splat (float 0x4056400000000000), <16 x float> %x
  %t2 = fcmp olt <16 x float> %t1, splat (float 0xC05A000000000000)
  %t3 = select <16 x i1> %t2, <16 x float> splat (float 0xC05A000000000000), <16 x float> %t1
  %t4 = fmul <16 x float> %t3, splat (float 0x3FF7154760000000)
  %t5 = call <16 x float> @llvm.rint.v16f32(<16 x float> %t4)
  %t6 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t5, <16 x float> splat (float 0xBFE62E4000000000), <16 x float> %t3)
  %t7 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t5, <16 x float> splat (float 0xBEB7F7D1C0000000), <16 x float> %t6)
  %t8 = call <16 x float> @llvm.fma.v16f32(<16 x float> splat (float 0x3F56940000000000), <16 x float> %t7, <16 x float> splat (float 0x3F8125EDC0000000))
  %t9 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t8, <16 x float> %t7, <16 x float> splat (float 0x3FA555B5A0000000))
  %t10 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t9, <16 x float> %t7, <16 x float> splat (float 0x3FC5554500000000))
  %t11 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t10, <16 x float> %t7, <16 x float> splat (float 0x3FDFFFFF60000000))
  %t12 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t11, <16 x float> %t7, <16 x float> splat (float 0x3FF0000000000000))
  %t13 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t12, <16 x float> %t7, <16 x float> splat (float 0x3FF0000000000000))
  %t14 = call <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float> %t13, <16 x float> %t5, <16 x float> zeroinitializer, i16 -1, i32 4)
  ret <16 x float> %t14
}

define void @fused_row(ptr readonly %params, i64 %begin, i64 %end) nounwind {
entry:
  %kept3 = alloca float, i64 112, align 64
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %start, label %exit
start:
  %t0 = getelementptr ptr, ptr %params, i64 0
  %p0 = load ptr, ptr %t0, align 8
  %t1 = getelementptr ptr, ptr %params, i64 1
  %p1 = load ptr, ptr %t1, align 8
  br label %row
row:
  %t2 = phi i64 [ %begin, %start ], [ %t132, %pass2.vectors.done ]
  %t3 = mul i64 %t2, 100
  %t4 = getelementptr float, ptr %p0, i64 %t3
  br label %pass0
pass0:
  %t5 = phi i64 [ 0, %row ], [ %t25, %pass0 ]
  %t6 = phi <16 x float> [ splat (float 0xFFF0000000000000), %row ], [ %t12, %pass0 ]
  %t7 = phi <16 x float> [ splat (float 0xFFF0000000000000), %row ], [ %t16, %pass0 ]
  %t8 = phi <16 x float> [ splat (float 0xFFF0000000000000), %row ], [ %t20, %pass0 ]
  %t9 = phi <16 x float> [ splat (float 0xFFF0000000000000), %row ], [ %t24, %pass0 ]
  %t10 = getelementptr float, ptr %t4, i64 %t5
  %t11 = load <16 x float>, ptr %t10, align 4
  %t12.beyond = fcmp ugt <16 x float> %t6, %t11
  %t12.extreme = select <16 x i1> %t12.beyond, <16 x float> %t6, <16 x float> %t11
  %t12.nan = fcmp uno <16 x float> %t11, %t11
  %t12 = select <16 x i1> %t12.nan, <16 x float> %t11, <16 x float> %t12.extreme
  %t13 = add i64 %t5, 16
  %t14 = getelementptr float, ptr %t4, i64 %t13
  %t15 = load <16 x float>, ptr %t14, align 4
  %t16.beyond = fcmp ugt <16 x float> %t7, %t15
  %t16.extreme = select <16 x i1> %t16.beyond, <16 x float> %t7, <16 x float> %t15
  %t16.nan = fcmp uno <16 x float> %t15, %t15
  %t16 = select <16 x i1> %t16.nan, <16 x float> %t15, <16 x float> %t16.extreme
  %t17 = add i64 %t5, 32
  %t18 = getelementptr float, ptr %t4, i64 %t17
  %t19 = load <16 x float>, ptr %t18, align 4
  %t20.beyond = fcmp ugt <16 x float> %t8, %t19
  %t20.extreme = select <16 x i1> %t20.beyond, <16 x float> %t8, <16 x float> %t19
  %t20.nan = fcmp uno <16 x float> %t19, %t19
  %t20 = select <16 x i1> %t20.nan, <16 x float> %t19, <16 x float> %t20.extreme
  %t21 = add i64 %t5, 48
  %t22 = getelementptr float, ptr %t4, i64 %t21
  %t23 = load <16 x float>, ptr %t22, align 4
  %t24.beyond = fcmp ugt <16 x float> %t9, %t23
  %t24.extreme = select <16 x i1> %t24.beyond, <16 x float> %t9, <16 x float> %t23
  %t24.nan = fcmp uno <16 x float> %t23, %t23
  %t24 = select <16 x i1> %t24.nan, <16 x float> %t23, <16 x float> %t24.extreme
  %t25 = add i64 %t5, 64
  %t26 = icmp slt i64 %t25, 64
  br i1 %t26, label %pass0, label %pass0.done
pass0.done:
  br label %pass0.vectors
pass0.vectors:
  %t27 = phi i64 [ 64, %pass0.done ], [ %t32, %pass0.vectors ]
  %t28 = phi <16 x float> [ %t12, %pass0.done ], [ %t31, %pass0.vectors ]
  %t29 = getelementptr float, ptr %t4, i64 %t27
  %t30 = load <16 x float>, ptr %t29, align 4
  %t31.beyond = fcmp ugt <16 x float> %t28, %t30
  %t31.extreme = select <16 x i1> %t31.beyond, <16 x float> %t28, <16 x float> %t30
  %t31.nan = fcmp uno <16 x float> %t30, %t30
  %t31 = select <16 x i1> %t31.nan, <16 x float> %t30, <16 x float> %t31.extreme
  %t32 = add i64 %t27, 16
  %t33 = icmp slt i64 %t32, 96
  br i1 %t33, label %pass0.vectors, label %pass0.vectors.done
pass0.vectors.done:
  %t34 = getelementptr float, ptr %t4, i64 96
  %t35 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t34, i32 4, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> splat (float 1.0))
  %t36 = select <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> %t35, <16 x float> splat (float 0xFFF0000000000000)
  %t37.beyond = fcmp ugt <16 x float> %t31, %t36
  %t37.extreme = select <16 x i1> %t37.beyond, <16 x float> %t31, <16 x float> %t36
  %t37.nan = fcmp uno <16 x float> %t36, %t36
  %t37 = select <16 x i1> %t37.nan, <16 x float> %t36, <16 x float> %t37.extreme
  %t38.beyond = fcmp ugt <16 x float> %t37, %t16
  %t38.extreme = select <16 x i1> %t38.beyond, <16 x float> %t37, <16 x float> %t16
  %t38.nan = fcmp uno <16 x float> %t16, %t16
  %t38 = select <16 x i1> %t38.nan, <16 x float> %t16, <16 x float> %t38.extreme
  %t39.beyond = fcmp ugt <16 x float> %t20, %t24
  %t39.extreme = select <16 x i1> %t39.beyond, <16 x float> %t20, <16 x float> %t24
  %t39.nan = fcmp uno <16 x float> %t24, %t24
  %t39 = select <16 x i1> %t39.nan, <16 x float> %t24, <16 x float> %t39.extreme
  %t40.beyond = fcmp ugt <16 x float> %t38, %t39
  %t40.extreme = select <16 x i1> %t40.beyond, <16 x float> %t38, <16 x float> %t39
  %t40.nan = fcmp uno <16 x float> %t39, %t39
  %t40 = select <16 x i1> %t40.nan, <16 x float> %t39, <16 x float> %t40.extreme
  %t41 = shufflevector <16 x float> %t40, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %t42 = shufflevector <16 x float> %t40, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t43.beyond = fcmp ugt <8 x float> %t41, %t42
  %t43.extreme = select <8 x i1> %t43.beyond, <8 x float> %t41, <8 x float> %t42
  %t43.nan = fcmp uno <8 x float> %t42, %t42
  %t43 = select <8 x i1> %t43.nan, <8 x float> %t42, <8 x float> %t43.extreme
  %t44 = shufflevector <8 x float> %t43, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %t45 = shufflevector <8 x float> %t43, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %t46.beyond = fcmp ugt <4 x float> %t44, %t45
  %t46.extreme = select <4 x i1> %t46.beyond, <4 x float> %t44, <4 x float> %t45
  %t46.nan = fcmp uno <4 x float> %t45, %t45
  %t46 = select <4 x i1> %t46.nan, <4 x float> %t45, <4 x float> %t46.extreme
  %t47 = shufflevector <4 x float> %t46, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %t48 = shufflevector <4 x float> %t46, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %t49.beyond = fcmp ugt <2 x float> %t47, %t48
  %t49.extreme = select <2 x i1> %t49.beyond, <2 x float> %t47, <2 x float> %t48
  %t49.nan = fcmp uno <2 x float> %t48, %t48
  %t49 = select <2 x i1> %t49.nan, <2 x float> %t48, <2 x float> %t49.extreme
  %t50 = shufflevector <2 x float> %t49, <2 x float> poison, <2 x i32> <i32 1, i32 0>
  %t51.beyond = fcmp ugt <2 x float> %t49, %t50
  %t51.extreme = select <2 x i1> %t51.beyond, <2 x float> %t49, <2 x float> %t50
  %t51.nan = fcmp uno <2 x float> %t50, %t50
  %t51 = select <2 x i1> %t51.nan, <2 x float> %t50, <2 x float> %t51.extreme
  %t52 = extractelement <2 x float> %t51, i64 0
  %t53 = insertelement <16 x float> poison, float %t52, i64 0
  %t54 = shufflevector <16 x float> %t53, <16 x float> poison, <16 x i32> zeroinitializer
  %t55 = mul i64 %t2, 100
  %t56 = getelementptr float, ptr %p0, i64 %t55
  br label %pass1
pass1:
  %t57 = phi i64 [ 0, %pass0.vectors.done ], [ %t73, %pass1 ]
  %t58 = phi <16 x float> [ splat (float 0x0000000000000000), %pass0.vectors.done ], [ %t65, %pass1 ]
  %t59 = phi <16 x float> [ splat (float 0x0000000000000000), %pass0.vectors.done ], [ %t72, %pass1 ]
  %t60 = getelementptr float, ptr %t56, i64 %t57
  %t61 = load <16 x float>, ptr %t60, align 4
  ; sub
  %t62 = fsub <16 x float> %t61, %t54
  ; exp
  %t63 = call <16 x float> @sinter.exp.v16f32(<16 x float> %t62)
  %t64 = getelementptr float, ptr %kept3, i64 %t57
  store <16 x float> %t63, ptr %t64, align 4
  %t65 = fadd <16 x float> %t58, %t63
  %t66 = add i64 %t57, 16
  %t67 = getelementptr float, ptr %t56, i64 %t66
  %t68 = load <16 x float>, ptr %t67, align 4
  ; sub
  %t69 = fsub <16 x float> %t68, %t54
  ; exp
  %t70 = call <16 x float> @sinter.exp.v16f32(<16 x float> %t69)
  %t71 = getelementptr float, ptr %kept3, i64 %t66
  store <16 x float> %t70, ptr %t71, align 4
  %t72 = fadd <16 x float> %t59, %t70
  %t73 = add i64 %t57, 32
  %t74 = icmp slt i64 %t73, 96
  br i1 %t74, label %pass1, label %pass1.done
pass1.done:
  %t75 = getelementptr float, ptr %t56, i64 96
  %t76 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t75, i32 4, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> splat (float 1.0))
  ; sub
  %t77 = fsub <16 x float> %t76, %t54
  ; exp
  %t78 = call <16 x float> @sinter.exp.v16f32(<16 x float> %t77)
  %t79 = getelementptr float, ptr %kept3, i64 96
  store <16 x float> %t78, ptr %t79, align 4
  %t80 = select <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> %t78, <16 x float> splat (float 0x0000000000000000)
  %t81 = fadd <16 x float> %t65, %t80
  %t82 = fadd <16 x float> %t81, %t72
  %t83 = shufflevector <16 x float> %t82, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %t84 = shufflevector <16 x float> %t82, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t85 = fadd <8 x float> %t83, %t84
  %t86 = shufflevector <8 x float> %t85, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %t87 = shufflevector <8 x float> %t85, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %t88 = fadd <4 x float> %t86, %t87
  %t89 = shufflevector <4 x float> %t88, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %t90 = shufflevector <4 x float> %t88, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %t91 = fadd <2 x float> %t89, %t90
  %t92 = shufflevector <2 x float> %t91, <2 x float> poison, <2 x i32> <i32 1, i32 0>
  %t93 = fadd <2 x float> %t91, %t92
  %t94 = extractelement <2 x float> %t93, i64 0
  %t95 = insertelement <16 x float> poison, float %t94, i64 0
  %t96 = shufflevector <16 x float> %t95, <16 x float> poison, <16 x i32> zeroinitializer
  %t97 = mul i64 %t2, 100
  %t98 = getelementptr float, ptr %p1, i64 %t97
  br label %pass2
pass2:
  %t99 = phi i64 [ 0, %pass1.done ], [ %t119, %pass2 ]
  %t100 = getelementptr float, ptr %kept3, i64 %t99
  %t101 = load <16 x float>, ptr %t100, align 4
  ; div
  %t102 = fdiv <16 x float> %t101, %t96
  %t103 = getelementptr float, ptr %t98, i64 %t99
  store <16 x float> %t102, ptr %t103, align 4
  %t104 = add i64 %t99, 16
  %t105 = getelementptr float, ptr %kept3, i64 %t104
  %t106 = load <16 x float>, ptr %t105, align 4
  ; div
  %t107 = fdiv <16 x float> %t106, %t96
  %t108 = getelementptr float, ptr %t98, i64 %t104
  store <16 x float> %t107, ptr %t108, align 4
  %t109 = add i64 %t99, 32
  %t110 = getelementptr float, ptr %kept3, i64 %t109
  %t111 = load <16 x float>, ptr %t110, align 4
  ; div
  %t112 = fdiv <16 x float> %t111, %t96
  %t113 = getelementptr float, ptr %t98, i64 %t109
  store <16 x float> %t112, ptr %t113, align 4
  %t114 = add i64 %t99, 48
  %t115 = getelementptr float, ptr %kept3, i64 %t114
  %t116 = load <16 x float>, ptr %t115, align 4
  ; div
  %t117 = fdiv <16 x float> %t116, %t96
  %t118 = getelementptr float, ptr %t98, i64 %t114
  store <16 x float> %t117, ptr %t118, align 4
  %t119 = add i64 %t99, 64
  %t120 = icmp slt i64 %t119, 64
  br i1 %t120, label %pass2, label %pass2.done
pass2.done:
  br label %pass2.vectors
pass2.vectors:
  %t121 = phi i64 [ 64, %pass2.done ], [ %t126, %pass2.vectors ]
  %t122 = getelementptr float, ptr %kept3, i64 %t121
  %t123 = load <16 x float>, ptr %t122, align 4
  ; div
  %t124 = fdiv <16 x float> %t123, %t96
  %t125 = getelementptr float, ptr %t98, i64 %t121
  store <16 x float> %t124, ptr %t125, align 4
  %t126 = add i64 %t121, 16
  %t127 = icmp slt i64 %t126, 96
  br i1 %t127, label %pass2.vectors, label %pass2.vectors.done
pass2.vectors.done:
  %t128 = getelementptr float, ptr %kept3, i64 96
  %t129 = load <16 x float>, ptr %t128, align 4
  ; div
  %t130 = fdiv <16 x float> %t129, %t96
  %t131 = getelementptr float, ptr %t98, i64 96
  call void @llvm.masked.store.v16f32.p0(<16 x float> %t130, ptr %t131, i32 4, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %t132 = add i64 %t2, 1
  %t133 = icmp slt i64 %t132, %end
  br i1 %t133, label %row, label %row.done
row.done:
  br label %exit
exit:
  ret void
}
