declare <8 x float> @Sleef_tanhf8_u10avx2(<8 x float>)
declare <8 x i16> @llvm.masked.load.v8i16.p0(ptr, i32, <8 x i1>, <8 x i16>)
declare void @llvm.masked.store.v8i16.p0(<8 x i16>, ptr, i32, <8 x i1>)

define void @fused_row(ptr readonly %params, i64 %begin, i64 %end) nounwind {
entry:
  %kept6 = alloca float, i64 72, align 64
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %start, label %exit
start:
  %t0 = getelementptr ptr, ptr %params, i64 0
  %p0 = load ptr, ptr %t0, align 8
  %t1 = getelementptr ptr, ptr %params, i64 1
  %p1 = load ptr, ptr %t1, align 8
  %t2 = getelementptr ptr, ptr %params, i64 2
  %p2 = load ptr, ptr %t2, align 8
  br label %row
row:
  %t3 = phi i64 [ %begin, %start ], [ %t146, %pass2.line.done ]
  br label %pass0.line
pass0.line:
  %t4 = phi i64 [ 0, %row ], [ %t32, %pass0.vectors.done ]
  %t5 = phi <8 x float> [ splat (float 0x0000000000000000), %row ], [ %t31, %pass0.vectors.done ]
  %t6 = phi <8 x float> [ splat (float 0x0000000000000000), %row ], [ %t6, %pass0.vectors.done ]
  %t7 = phi <8 x float> [ splat (float 0x0000000000000000), %row ], [ %t7, %pass0.vectors.done ]
  %t8 = phi <8 x float> [ splat (float 0x0000000000000000), %row ], [ %t8, %pass0.vectors.done ]
  %t9 = mul i64 %t4, 24
  %t10 = mul i64 %t3, 63
  %t11 = mul i64 %t4, 21
  %t12 = add i64 %t10, %t11
  %t13 = getelementptr i16, ptr %p0, i64 %t12
  %t14 = getelementptr float, ptr %kept6, i64 %t9
  br label %pass0.vectors
pass0.vectors:
  %t15 = phi i64 [ 0, %pass0.line ], [ %t23, %pass0.vectors ]
  %t16 = phi <8 x float> [ %t5, %pass0.line ], [ %t22, %pass0.vectors ]
  %t17 = getelementptr i16, ptr %t13, i64 %t15
  %t18 = load <8 x i16>, ptr %t17, align 2
  ; cast
  %t19 = zext <8 x i16> %t18 to <8 x i32>
  %t20 = shl <8 x i32> %t19, splat (i32 16)
  %t21 = bitcast <8 x i32> %t20 to <8 x float>
  %t22 = fadd <8 x float> %t16, %t21
  %t23 = add i64 %t15, 8
  %t24 = icmp slt i64 %t23, 16
  br i1 %t24, label %pass0.vectors, label %pass0.vectors.done
pass0.vectors.done:
  %t25 = getelementptr i16, ptr %t13, i64 16
  %t26 = call <8 x i16> @llvm.masked.load.v8i16.p0(ptr %t25, i32 2, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x i16> splat (i16 16256))
  ; cast
  %t27 = zext <8 x i16> %t26 to <8 x i32>
  %t28 = shl <8 x i32> %t27, splat (i32 16)
  %t29 = bitcast <8 x i32> %t28 to <8 x float>
  %t30 = select <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x float> %t29, <8 x float> splat (float 0x0000000000000000)
  %t31 = fadd <8 x float> %t22, %t30
  %t32 = add i64 %t4, 1
  %t33 = icmp slt i64 %t32, 3
  br i1 %t33, label %pass0.line, label %pass0.line.done
pass0.line.done:
  %t34 = fadd <8 x float> %t31, %t6
  %t35 = fadd <8 x float> %t7, %t8
  %t36 = fadd <8 x float> %t34, %t35
  %t37 = shufflevector <8 x float> %t36, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %t38 = shufflevector <8 x float> %t36, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %t39 = fadd <4 x float> %t37, %t38
  %t40 = shufflevector <4 x float> %t39, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %t41 = shufflevector <4 x float> %t39, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %t42 = fadd <2 x float> %t40, %t41
  %t43 = shufflevector <2 x float> %t42, <2 x float> poison, <2 x i32> <i32 1, i32 0>
  %t44 = fadd <2 x float> %t42, %t43
  %t45 = extractelement <2 x float> %t44, i64 0
  %t46 = insertelement <8 x float> poison, float %t45, i64 0
  %t47 = shufflevector <8 x float> %t46, <8 x float> poison, <8 x i32> zeroinitializer
  ; mul
  %t48 = fmul <8 x float> %t47, splat (float 0x3F50624DE0000000)
  br label %pass1.line
pass1.line:
  %t49 = phi i64 [ 0, %pass0.line.done ], [ %t80, %pass1.done ]
  %t50 = phi <8 x float> [ splat (float 0xFFF0000000000000), %pass0.line.done ], [ %t79, %pass1.done ]
  %t51 = mul i64 %t49, 24
  %t52 = mul i64 %t3, 63
  %t53 = mul i64 %t49, 21
  %t54 = add i64 %t52, %t53
  %t55 = getelementptr i16, ptr %p0, i64 %t54
  %t56 = getelementptr float, ptr %kept6, i64 %t51
  br label %pass1
pass1:
  %t57 = phi i64 [ 0, %pass1.line ], [ %t68, %pass1 ]
  %t58 = phi <8 x float> [ %t50, %pass1.line ], [ %t67, %pass1 ]
  %t59 = getelementptr i16, ptr %t55, i64 %t57
  %t60 = load <8 x i16>, ptr %t59, align 2
  ; cast
  %t61 = zext <8 x i16> %t60 to <8 x i32>
  %t62 = shl <8 x i32> %t61, splat (i32 16)
  %t63 = bitcast <8 x i32> %t62 to <8 x float>
  ; sub
  %t64 = fsub <8 x float> %t63, %t48
  ; tanh
  %t65 = call <8 x float> @Sleef_tanhf8_u10avx2(<8 x float> %t64)
  %t66 = getelementptr float, ptr %t56, i64 %t57
  store <8 x float> %t65, ptr %t66, align 4
  %t67.beyond = fcmp ugt <8 x float> %t58, %t65
  %t67.extreme = select <8 x i1> %t67.beyond, <8 x float> %t58, <8 x float> %t65
  %t67.nan = fcmp uno <8 x float> %t65, %t65
  %t67 = select <8 x i1> %t67.nan, <8 x float> %t65, <8 x float> %t67.extreme
  %t68 = add i64 %t57, 8
  %t69 = icmp slt i64 %t68, 16
  br i1 %t69, label %pass1, label %pass1.done
pass1.done:
  %t70 = getelementptr i16, ptr %t55, i64 16
  %t71 = call <8 x i16> @llvm.masked.load.v8i16.p0(ptr %t70, i32 2, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x i16> splat (i16 16256))
  ; cast
  %t72 = zext <8 x i16> %t71 to <8 x i32>
  %t73 = shl <8 x i32> %t72, splat (i32 16)
  %t74 = bitcast <8 x i32> %t73 to <8 x float>
  ; sub
  %t75 = fsub <8 x float> %t74, %t48
  ; tanh
  %t76 = call <8 x float> @Sleef_tanhf8_u10avx2(<8 x float> %t75)
  %t77 = getelementptr float, ptr %t56, i64 16
  store <8 x float> %t76, ptr %t77, align 4
  %t78 = select <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x float> %t76, <8 x float> splat (float 0xFFF0000000000000)
  %t79.beyond = fcmp ugt <8 x float> %t67, %t78
  %t79.extreme = select <8 x i1> %t79.beyond, <8 x float> %t67, <8 x float> %t78
  %t79.nan = fcmp uno <8 x float> %t78, %t78
  %t79 = select <8 x i1> %t79.nan, <8 x float> %t78, <8 x float> %t79.extreme
  %t80 = add i64 %t49, 1
  %t81 = icmp slt i64 %t80, 3
  br i1 %t81, label %pass1.line, label %pass1.line.done
pass1.line.done:
  %t82 = shufflevector <8 x float> %t79, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %t83 = shufflevector <8 x float> %t79, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %t84.beyond = fcmp ugt <4 x float> %t82, %t83
  %t84.extreme = select <4 x i1> %t84.beyond, <4 x float> %t82, <4 x float> %t83
  %t84.nan = fcmp uno <4 x float> %t83, %t83
  %t84 = select <4 x i1> %t84.nan, <4 x float> %t83, <4 x float> %t84.extreme
  %t85 = shufflevector <4 x float> %t84, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %t86 = shufflevector <4 x float> %t84, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %t87.beyond = fcmp ugt <2 x float> %t85, %t86
  %t87.extreme = select <2 x i1> %t87.beyond, <2 x float> %t85, <2 x float> %t86
  %t87.nan = fcmp uno <2 x float> %t86, %t86
  %t87 = select <2 x i1> %t87.nan, <2 x float> %t86, <2 x float> %t87.extreme
  %t88 = shufflevector <2 x float> %t87, <2 x float> poison, <2 x i32> <i32 1, i32 0>
  %t89.beyond = fcmp ugt <2 x float> %t87, %t88
  %t89.extreme = select <2 x i1> %t89.beyond, <2 x float> %t87, <2 x float> %t88
  %t89.nan = fcmp uno <2 x float> %t88, %t88
  %t89 = select <2 x i1> %t89.nan, <2 x float> %t88, <2 x float> %t89.extreme
  %t90 = extractelement <2 x float> %t89, i64 0
  %t91 = insertelement <8 x float> poison, float %t90, i64 0
  %t92 = shufflevector <8 x float> %t91, <8 x float> poison, <8 x i32> zeroinitializer
  br label %pass2.line
pass2.line:
  %t93 = phi i64 [ 0, %pass1.line.done ], [ %t144, %pass2.vectors.done ]
  %t94 = mul i64 %t93, 24
  %t95 = getelementptr i16, ptr %p1, i64 %t93
  %t96 = mul i64 %t3, 63
  %t97 = mul i64 %t93, 21
  %t98 = add i64 %t96, %t97
  %t99 = getelementptr i16, ptr %p2, i64 %t98
  %t100 = getelementptr float, ptr %kept6, i64 %t94
  br label %pass2.vectors
pass2.vectors:
  %t101 = phi i64 [ 0, %pass2.line ], [ %t122, %pass2.vectors ]
  %t102 = getelementptr float, ptr %t100, i64 %t101
  %t103 = load <8 x float>, ptr %t102, align 4
  %t104 = load i16, ptr %t95, align 2
  %t105 = insertelement <8 x i16> poison, i16 %t104, i64 0
  %t106 = shufflevector <8 x i16> %t105, <8 x i16> poison, <8 x i32> zeroinitializer
  ; cast
  %t107 = zext <8 x i16> %t106 to <8 x i32>
  %t108 = shl <8 x i32> %t107, splat (i32 16)
  %t109 = bitcast <8 x i32> %t108 to <8 x float>
  ; mul
  %t110 = fmul <8 x float> %t103, %t109
  ; add
  %t111 = fadd <8 x float> %t110, %t92
  ; cast
  %t112 = bitcast <8 x float> %t111 to <8 x i32>
  %t113 = lshr <8 x i32> %t112, splat (i32 16)
  %t114 = and <8 x i32> %t113, splat (i32 1)
  %t115 = add <8 x i32> %t114, splat (i32 32767)
  %t116 = add <8 x i32> %t112, %t115
  %t117 = lshr <8 x i32> %t116, splat (i32 16)
  %t118 = fcmp uno <8 x float> %t111, zeroinitializer
  %t119 = select <8 x i1> %t118, <8 x i32> splat (i32 32704), <8 x i32> %t117
  %t120 = trunc <8 x i32> %t119 to <8 x i16>
  %t121 = getelementptr i16, ptr %t99, i64 %t101
  store <8 x i16> %t120, ptr %t121, align 2
  %t122 = add i64 %t101, 8
  %t123 = icmp slt i64 %t122, 16
  br i1 %t123, label %pass2.vectors, label %pass2.vectors.done
pass2.vectors.done:
  %t124 = getelementptr float, ptr %t100, i64 16
  %t125 = load <8 x float>, ptr %t124, align 4
  %t126 = load i16, ptr %t95, align 2
  %t127 = insertelement <8 x i16> poison, i16 %t126, i64 0
  %t128 = shufflevector <8 x i16> %t127, <8 x i16> poison, <8 x i32> zeroinitializer
  ; cast
  %t129 = zext <8 x i16> %t128 to <8 x i32>
  %t130 = shl <8 x i32> %t129, splat (i32 16)
  %t131 = bitcast <8 x i32> %t130 to <8 x float>
  ; mul
  %t132 = fmul <8 x float> %t125, %t131
  ; add
  %t133 = fadd <8 x float> %t132, %t92
  ; cast
  %t134 = bitcast <8 x float> %t133 to <8 x i32>
  %t135 = lshr <8 x i32> %t134, splat (i32 16)
  %t136 = and <8 x i32> %t135, splat (i32 1)
  %t137 = add <8 x i32> %t136, splat (i32 32767)
  %t138 = add <8 x i32> %t134, %t137
  %t139 = lshr <8 x i32> %t138, splat (i32 16)
  %t140 = fcmp uno <8 x float> %t133, zeroinitializer
  %t141 = select <8 x i1> %t140, <8 x i32> splat (i32 32704), <8 x i32> %t139
  %t142 = trunc <8 x i32> %t141 to <8 x i16>
  %t143 = getelementptr i16, ptr %t99, i64 16
  call void @llvm.masked.store.v8i16.p0(<8 x i16> %t142, ptr %t143, i32 2, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>)
  %t144 = add i64 %t93, 1
  %t145 = icmp slt i64 %t144, 3
  br i1 %t145, label %pass2.line, label %pass2.line.done
pass2.line.done:
  %t146 = add i64 %t3, 1
  %t147 = icmp slt i64 %t146, %end
  br i1 %t147, label %row, label %row.done
row.done:
  br label %exit
exit:
  ret void
}
