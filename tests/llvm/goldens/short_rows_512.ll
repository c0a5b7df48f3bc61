declare <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr>, i32, <16 x i1>, <16 x float>)
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, <16 x i1>)

define void @fused_add_relu(ptr readonly %params, i64 %begin, i64 %end) nounwind {
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
  %t3 = sub i64 %end, %begin
  %t4 = and i64 %t3, -64
  %main.end = add i64 %begin, %t4
  %has.main = icmp slt i64 %begin, %main.end
  br i1 %has.main, label %main, label %rest
main:
  %i = phi i64 [ %begin, %start ], [ %i.next, %main ]
  %t5 = getelementptr float, ptr %p0, i64 %i
  %t6 = load <16 x float>, ptr %t5, align 4
  ; cast
  %t7 = trunc i64 %i to i32
  %t8 = insertelement <16 x i32> poison, i32 %t7, i64 0
  %t9 = shufflevector <16 x i32> %t8, <16 x i32> poison, <16 x i32> zeroinitializer
  %t10 = add <16 x i32> %t9, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t11 = urem <16 x i32> %t10, splat (i32 3)
  %t12 = getelementptr float, ptr %p1, <16 x i32> %t11
  %t13 = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> %t12, i32 4, <16 x i1> splat (i1 true), <16 x float> splat (float 1.0))
  ; cast
  ; add
  %t14 = fadd <16 x float> %t6, %t13
  ; maximum
  %t15.beyond = fcmp ugt <16 x float> %t14, splat (float 0x0000000000000000)
  %t15.extreme = select <16 x i1> %t15.beyond, <16 x float> %t14, <16 x float> splat (float 0x0000000000000000)
  %t15.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t15 = select <16 x i1> %t15.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t15.extreme
  ; cast
  %t16 = getelementptr float, ptr %p2, i64 %i
  store <16 x float> %t15, ptr %t16, align 4
  %t17 = add i64 %i, 16
  %t18 = getelementptr float, ptr %p0, i64 %t17
  %t19 = load <16 x float>, ptr %t18, align 4
  ; cast
  %t20 = trunc i64 %t17 to i32
  %t21 = insertelement <16 x i32> poison, i32 %t20, i64 0
  %t22 = shufflevector <16 x i32> %t21, <16 x i32> poison, <16 x i32> zeroinitializer
  %t23 = add <16 x i32> %t22, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t24 = urem <16 x i32> %t23, splat (i32 3)
  %t25 = getelementptr float, ptr %p1, <16 x i32> %t24
  %t26 = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> %t25, i32 4, <16 x i1> splat (i1 true), <16 x float> splat (float 1.0))
  ; cast
  ; add
  %t27 = fadd <16 x float> %t19, %t26
  ; maximum
  %t28.beyond = fcmp ugt <16 x float> %t27, splat (float 0x0000000000000000)
  %t28.extreme = select <16 x i1> %t28.beyond, <16 x float> %t27, <16 x float> splat (float 0x0000000000000000)
  %t28.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t28 = select <16 x i1> %t28.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t28.extreme
  ; cast
  %t29 = getelementptr float, ptr %p2, i64 %t17
  store <16 x float> %t28, ptr %t29, align 4
  %t30 = add i64 %i, 32
  %t31 = getelementptr float, ptr %p0, i64 %t30
  %t32 = load <16 x float>, ptr %t31, align 4
  ; cast
  %t33 = trunc i64 %t30 to i32
  %t34 = insertelement <16 x i32> poison, i32 %t33, i64 0
  %t35 = shufflevector <16 x i32> %t34, <16 x i32> poison, <16 x i32> zeroinitializer
  %t36 = add <16 x i32> %t35, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t37 = urem <16 x i32> %t36, splat (i32 3)
  %t38 = getelementptr float, ptr %p1, <16 x i32> %t37
  %t39 = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> %t38, i32 4, <16 x i1> splat (i1 true), <16 x float> splat (float 1.0))
  ; cast
  ; add
  %t40 = fadd <16 x float> %t32, %t39
  ; maximum
  %t41.beyond = fcmp ugt <16 x float> %t40, splat (float 0x0000000000000000)
  %t41.extreme = select <16 x i1> %t41.beyond, <16 x float> %t40, <16 x float> splat (float 0x0000000000000000)
  %t41.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t41 = select <16 x i1> %t41.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t41.extreme
  ; cast
  %t42 = getelementptr float, ptr %p2, i64 %t30
  store <16 x float> %t41, ptr %t42, align 4
  %t43 = add i64 %i, 48
  %t44 = getelementptr float, ptr %p0, i64 %t43
  %t45 = load <16 x float>, ptr %t44, align 4
  ; cast
  %t46 = trunc i64 %t43 to i32
  %t47 = insertelement <16 x i32> poison, i32 %t46, i64 0
  %t48 = shufflevector <16 x i32> %t47, <16 x i32> poison, <16 x i32> zeroinitializer
  %t49 = add <16 x i32> %t48, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t50 = urem <16 x i32> %t49, splat (i32 3)
  %t51 = getelementptr float, ptr %p1, <16 x i32> %t50
  %t52 = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> %t51, i32 4, <16 x i1> splat (i1 true), <16 x float> splat (float 1.0))
  ; cast
  ; add
  %t53 = fadd <16 x float> %t45, %t52
  ; maximum
  %t54.beyond = fcmp ugt <16 x float> %t53, splat (float 0x0000000000000000)
  %t54.extreme = select <16 x i1> %t54.beyond, <16 x float> %t53, <16 x float> splat (float 0x0000000000000000)
  %t54.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t54 = select <16 x i1> %t54.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t54.extreme
  ; cast
  %t55 = getelementptr float, ptr %p2, i64 %t43
  store <16 x float> %t54, ptr %t55, align 4
  %i.next = add i64 %i, 64
  %more.main = icmp slt i64 %i.next, %main.end
  br i1 %more.main, label %main, label %rest
rest:
  %has.tail = icmp slt i64 %main.end, %end
  br i1 %has.tail, label %tail, label %done
tail:
  %j = phi i64 [ %main.end, %rest ], [ %j.next, %tail ]
  %t56 = sub i64 %end, %j
  %t57 = icmp slt i64 %t56, 16
  %t58 = select i1 %t57, i64 %t56, i64 16
  %t59 = trunc i64 %t58 to i32
  %t60 = insertelement <16 x i32> poison, i32 %t59, i64 0
  %t61 = shufflevector <16 x i32> %t60, <16 x i32> poison, <16 x i32> zeroinitializer
  %t62 = icmp ult <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %t61
  %t63 = getelementptr float, ptr %p0, i64 %j
  %t64 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t63, i32 4, <16 x i1> %t62, <16 x float> splat (float 1.0))
  ; cast
  %t65 = trunc i64 %j to i32
  %t66 = insertelement <16 x i32> poison, i32 %t65, i64 0
  %t67 = shufflevector <16 x i32> %t66, <16 x i32> poison, <16 x i32> zeroinitializer
  %t68 = add <16 x i32> %t67, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %t69 = urem <16 x i32> %t68, splat (i32 3)
  %t70 = getelementptr float, ptr %p1, <16 x i32> %t69
  %t71 = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> %t70, i32 4, <16 x i1> %t62, <16 x float> splat (float 1.0))
  ; cast
  ; add
  %t72 = fadd <16 x float> %t64, %t71
  ; maximum
  %t73.beyond = fcmp ugt <16 x float> %t72, splat (float 0x0000000000000000)
  %t73.extreme = select <16 x i1> %t73.beyond, <16 x float> %t72, <16 x float> splat (float 0x0000000000000000)
  %t73.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t73 = select <16 x i1> %t73.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t73.extreme
  ; cast
  %t74 = getelementptr float, ptr %p2, i64 %j
  call void @llvm.masked.store.v16f32.p0(<16 x float> %t73, ptr %t74, i32 4, <16 x i1> %t62)
  %j.next = add i64 %j, 16
  %more.tail = icmp slt i64 %j.next, %end
  br i1 %more.tail, label %tail, label %done
done:
  br label %exit
exit:
  ret void
}
