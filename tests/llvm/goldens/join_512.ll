declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, <16 x i1>)

define void @fused_row(ptr readonly %params, i64 %begin, i64 %end) nounwind {
entry:
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
  %pos = phi i64 [ %begin, %start ], [ %pos.next, %done ]
  %row.index = udiv i64 %pos, 64
  %row.first = mul i64 %row.index, 64
  %lo = sub i64 %pos, %row.first
  %left = sub i64 %end, %row.first
  %partial = icmp slt i64 %left, 64
  %hi = select i1 %partial, i64 %left, i64 64
  %t3 = mul i64 %row.index, 40
  %t4 = getelementptr float, ptr %p0, i64 %t3
  %t5 = mul i64 %row.index, 24
  %t6 = add i64 -40, %t5
  %t7 = getelementptr float, ptr %p1, i64 %t6
  %t8 = mul i64 %row.index, 64
  %t9 = getelementptr float, ptr %p2, i64 %t8
  %t10 = sub i64 %hi, %lo
  %t11 = and i64 %t10, -64
  %main.end = add i64 %lo, %t11
  %has.main = icmp slt i64 %lo, %main.end
  br i1 %has.main, label %main, label %rest
main:
  %i = phi i64 [ %lo, %row ], [ %i.next, %main ]
  %t12 = trunc i64 %i to i32
  %t13 = insertelement <16 x i32> poison, i32 %t12, i64 0
  %t14 = shufflevector <16 x i32> %t13, <16 x i32> poison, <16 x i32> zeroinitializer
  %t15 = add <16 x i32> %t14, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t16 = icmp sge <16 x i32> %t15, splat (i32 0)
  %t17 = icmp slt <16 x i32> %t15, splat (i32 40)
  %t18 = and <16 x i1> %t16, %t17
  %t19 = getelementptr float, ptr %t4, i64 %i
  %t20 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t19, i32 4, <16 x i1> %t18, <16 x float> splat (float 1.0))
  %t21 = trunc i64 %i to i32
  %t22 = insertelement <16 x i32> poison, i32 %t21, i64 0
  %t23 = shufflevector <16 x i32> %t22, <16 x i32> poison, <16 x i32> zeroinitializer
  %t24 = add <16 x i32> %t23, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t25 = icmp sge <16 x i32> %t24, splat (i32 40)
  %t26 = icmp slt <16 x i32> %t24, splat (i32 64)
  %t27 = and <16 x i1> %t25, %t26
  %t28 = getelementptr float, ptr %t7, i64 %i
  %t29 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t28, i32 4, <16 x i1> %t27, <16 x float> splat (float 1.0))
  ; where
  %t30 = select <16 x i1> %t18, <16 x float> %t20, <16 x float> %t29
  ; maximum
  %t31.beyond = fcmp ugt <16 x float> %t30, splat (float 0x0000000000000000)
  %t31.extreme = select <16 x i1> %t31.beyond, <16 x float> %t30, <16 x float> splat (float 0x0000000000000000)
  %t31.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t31 = select <16 x i1> %t31.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t31.extreme
  %t32 = getelementptr float, ptr %t9, i64 %i
  store <16 x float> %t31, ptr %t32, align 4
  %t33 = add i64 %i, 16
  %t34 = trunc i64 %t33 to i32
  %t35 = insertelement <16 x i32> poison, i32 %t34, i64 0
  %t36 = shufflevector <16 x i32> %t35, <16 x i32> poison, <16 x i32> zeroinitializer
  %t37 = add <16 x i32> %t36, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t38 = icmp sge <16 x i32> %t37, splat (i32 0)
  %t39 = icmp slt <16 x i32> %t37, splat (i32 40)
  %t40 = and <16 x i1> %t38, %t39
  %t41 = getelementptr float, ptr %t4, i64 %t33
  %t42 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t41, i32 4, <16 x i1> %t40, <16 x float> splat (float 1.0))
  %t43 = trunc i64 %t33 to i32
  %t44 = insertelement <16 x i32> poison, i32 %t43, i64 0
  %t45 = shufflevector <16 x i32> %t44, <16 x i32> poison, <16 x i32> zeroinitializer
  %t46 = add <16 x i32> %t45, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t47 = icmp sge <16 x i32> %t46, splat (i32 40)
  %t48 = icmp slt <16 x i32> %t46, splat (i32 64)
  %t49 = and <16 x i1> %t47, %t48
  %t50 = getelementptr float, ptr %t7, i64 %t33
  %t51 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t50, i32 4, <16 x i1> %t49, <16 x float> splat (float 1.0))
  ; where
  %t52 = select <16 x i1> %t40, <16 x float> %t42, <16 x float> %t51
  ; maximum
  %t53.beyond = fcmp ugt <16 x float> %t52, splat (float 0x0000000000000000)
  %t53.extreme = select <16 x i1> %t53.beyond, <16 x float> %t52, <16 x float> splat (float 0x0000000000000000)
  %t53.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t53 = select <16 x i1> %t53.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t53.extreme
  %t54 = getelementptr float, ptr %t9, i64 %t33
  store <16 x float> %t53, ptr %t54, align 4
  %t55 = add i64 %i, 32
  %t56 = trunc i64 %t55 to i32
  %t57 = insertelement <16 x i32> poison, i32 %t56, i64 0
  %t58 = shufflevector <16 x i32> %t57, <16 x i32> poison, <16 x i32> zeroinitializer
  %t59 = add <16 x i32> %t58, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t60 = icmp sge <16 x i32> %t59, splat (i32 0)
  %t61 = icmp slt <16 x i32> %t59, splat (i32 40)
  %t62 = and <16 x i1> %t60, %t61
  %t63 = getelementptr float, ptr %t4, i64 %t55
  %t64 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t63, i32 4, <16 x i1> %t62, <16 x float> splat (float 1.0))
  %t65 = trunc i64 %t55 to i32
  %t66 = insertelement <16 x i32> poison, i32 %t65, i64 0
  %t67 = shufflevector <16 x i32> %t66, <16 x i32> poison, <16 x i32> zeroinitializer
  %t68 = add <16 x i32> %t67, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t69 = icmp sge <16 x i32> %t68, splat (i32 40)
  %t70 = icmp slt <16 x i32> %t68, splat (i32 64)
  %t71 = and <16 x i1> %t69, %t70
  %t72 = getelementptr float, ptr %t7, i64 %t55
  %t73 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t72, i32 4, <16 x i1> %t71, <16 x float> splat (float 1.0))
  ; where
  %t74 = select <16 x i1> %t62, <16 x float> %t64, <16 x float> %t73
  ; maximum
  %t75.beyond = fcmp ugt <16 x float> %t74, splat (float 0x0000000000000000)
  %t75.extreme = select <16 x i1> %t75.beyond, <16 x float> %t74, <16 x float> splat (float 0x0000000000000000)
  %t75.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t75 = select <16 x i1> %t75.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t75.extreme
  %t76 = getelementptr float, ptr %t9, i64 %t55
  store <16 x float> %t75, ptr %t76, align 4
  %t77 = add i64 %i, 48
  %t78 = trunc i64 %t77 to i32
  %t79 = insertelement <16 x i32> poison, i32 %t78, i64 0
  %t80 = shufflevector <16 x i32> %t79, <16 x i32> poison, <16 x i32> zeroinitializer
  %t81 = add <16 x i32> %t80, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t82 = icmp sge <16 x i32> %t81, splat (i32 0)
  %t83 = icmp slt <16 x i32> %t81, splat (i32 40)
  %t84 = and <16 x i1> %t82, %t83
  %t85 = getelementptr float, ptr %t4, i64 %t77
  %t86 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t85, i32 4, <16 x i1> %t84, <16 x float> splat (float 1.0))
  %t87 = trunc i64 %t77 to i32
  %t88 = insertelement <16 x i32> poison, i32 %t87, i64 0
  %t89 = shufflevector <16 x i32> %t88, <16 x i32> poison, <16 x i32> zeroinitializer
  %t90 = add <16 x i32> %t89, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t91 = icmp sge <16 x i32> %t90, splat (i32 40)
  %t92 = icmp slt <16 x i32> %t90, splat (i32 64)
  %t93 = and <16 x i1> %t91, %t92
  %t94 = getelementptr float, ptr %t7, i64 %t77
  %t95 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t94, i32 4, <16 x i1> %t93, <16 x float> splat (float 1.0))
  ; where
  %t96 = select <16 x i1> %t84, <16 x float> %t86, <16 x float> %t95
  ; maximum
  %t97.beyond = fcmp ugt <16 x float> %t96, splat (float 0x0000000000000000)
  %t97.extreme = select <16 x i1> %t97.beyond, <16 x float> %t96, <16 x float> splat (float 0x0000000000000000)
  %t97.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t97 = select <16 x i1> %t97.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t97.extreme
  %t98 = getelementptr float, ptr %t9, i64 %t77
  store <16 x float> %t97, ptr %t98, align 4
  %i.next = add i64 %i, 64
  %more.main = icmp slt i64 %i.next, %main.end
  br i1 %more.main, label %main, label %rest
rest:
  %has.tail = icmp slt i64 %main.end, %hi
  br i1 %has.tail, label %tail, label %done
tail:
  %j = phi i64 [ %main.end, %rest ], [ %j.next, %tail ]
  %t99 = sub i64 %hi, %j
  %t100 = icmp slt i64 %t99, 16
  %t101 = select i1 %t100, i64 %t99, i64 16
  %t102 = trunc i64 %t101 to i32
  %t103 = insertelement <16 x i32> poison, i32 %t102, i64 0
  %t104 = shufflevector <16 x i32> %t103, <16 x i32> poison, <16 x i32> zeroinitializer
  %t105 = icmp ult <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %t104
  %t106 = trunc i64 %j to i32
  %t107 = insertelement <16 x i32> poison, i32 %t106, i64 0
  %t108 = shufflevector <16 x i32> %t107, <16 x i32> poison, <16 x i32> zeroinitializer
  %t109 = add <16 x i32> %t108, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t110 = icmp sge <16 x i32> %t109, splat (i32 0)
  %t111 = icmp slt <16 x i32> %t109, splat (i32 40)
  %t112 = and <16 x i1> %t110, %t111
  %t113 = and <16 x i1> %t112, %t105
  %t114 = getelementptr float, ptr %t4, i64 %j
  %t115 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t114, i32 4, <16 x i1> %t113, <16 x float> splat (float 1.0))
  %t116 = trunc i64 %j to i32
  %t117 = insertelement <16 x i32> poison, i32 %t116, i64 0
  %t118 = shufflevector <16 x i32> %t117, <16 x i32> poison, <16 x i32> zeroinitializer
  %t119 = add <16 x i32> %t118, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t120 = icmp sge <16 x i32> %t119, splat (i32 40)
  %t121 = icmp slt <16 x i32> %t119, splat (i32 64)
  %t122 = and <16 x i1> %t120, %t121
  %t123 = and <16 x i1> %t122, %t105
  %t124 = getelementptr float, ptr %t7, i64 %j
  %t125 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t124, i32 4, <16 x i1> %t123, <16 x float> splat (float 1.0))
  ; where
  %t126 = select <16 x i1> %t112, <16 x float> %t115, <16 x float> %t125
  ; maximum
  %t127.beyond = fcmp ugt <16 x float> %t126, splat (float 0x0000000000000000)
  %t127.extreme = select <16 x i1> %t127.beyond, <16 x float> %t126, <16 x float> splat (float 0x0000000000000000)
  %t127.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t127 = select <16 x i1> %t127.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t127.extreme
  %t128 = getelementptr float, ptr %t9, i64 %j
  call void @llvm.masked.store.v16f32.p0(<16 x float> %t127, ptr %t128, i32 4, <16 x i1> %t105)
  %j.next = add i64 %j, 16
  %more.tail = icmp slt i64 %j.next, %hi
  br i1 %more.tail, label %tail, label %done
done:
  %pos.next = add i64 %row.first, %hi
  %more.rows = icmp slt i64 %pos.next, %end
  br i1 %more.rows, label %row, label %exit
exit:
  ret void
}
